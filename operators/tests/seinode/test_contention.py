"""Two reconciles that both saw `plan == nil`: every way to write status, on both kinds and both servers.

Safe is a way under which the first plan survives and its id never changes. The second writer may be another pass of
one process on an old cache or another process: the server sees the same requests, so the ways are tried from two
clients; `decide` remembers its process's own writes and is tried both with and without that memory.
"""

import pytest

import fairlead as fl
from fairlead import writes
from fairlead.api.errors import Conflict
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead_operators import crds
from fairlead_operators.seinode import demo, legacy, plans
from fairlead_operators.seinode.kinds import SeiNode, SeiNodeDeployment

NOW = "2026-01-01T00:00:00Z"
SPEC = demo.make_node("x")["spec"]
OBJECTS = {
    "SeiNode": (SeiNode, SPEC),
    "SeiNodeDeployment": (SeiNodeDeployment, {"replicas": 1, "template": {"spec": SPEC}}),
}


def a_plan(name):
    return {"id": name, "phase": "Active", "executor": name, "generation": 1, "movedAt": NOW, "tasks": []}


async def put_with_version(client, kind, cached, plan):
    await client.replace(fl.Object({**cached, "status": {**cached.status, "plan": plan}}), subresource="status")


async def merge_with_version(client, kind, cached, plan):
    patch = {"metadata": {"resourceVersion": cached.resource_version}, "status": {"plan": plan}}
    await client.patch(kind, cached.name, cached.namespace, patch, type=PatchType.MERGE, subresource="status")


async def merge_from(client, kind, cached, plan):
    await legacy.merge_from(client, cached, {**cached.status, "plan": plan})


async def locked_merge_of_a_base_before_our_own_metadata_write(client, kind, cached, plan):
    """The pass writes an annotation of its own between taking its base and flushing."""
    touch = {"metadata": {"annotations": {plan["id"]: "seen"}}}
    await client.patch(kind, cached.name, cached.namespace, touch, type=PatchType.MERGE)
    await merge_with_version(client, kind, cached, plan)


def applied(cached, plan, **metadata):
    metadata = {"name": cached.name, "namespace": cached.namespace, **metadata}
    body = {"apiVersion": cached.api_version, "kind": cached.kind, "metadata": metadata, "status": {"plan": plan}}
    return fl.Object(body)


async def blind_apply(client, kind, cached, plan):
    """Both replicas are one field manager, so nothing is refused."""
    await client.apply(applied(cached, plan), field_manager="sei", force=False, subresource="status")


async def apply_with_version(client, kind, cached, plan):
    body = applied(cached, plan, resourceVersion=cached.resource_version)
    await client.apply(body, field_manager="sei", force=False, subresource="status")


async def forced_apply(client, kind, cached, plan):
    await client.apply(applied(cached, plan), field_manager=plan["id"], force=True, subresource="status")


def keep_or_make(plan):
    def decide(draft):
        if not draft.status.get("plan"):
            draft.status["plan"] = plan
        return draft.status["plan"]["id"]

    return decide


async def ours(client, kind, cached, plan):
    writer = writes.Writer(client, World(), "sei")
    decided = await writes.decide(writer, kind, cached, keep_or_make(plan))
    assert decided.result == "first"  # the loser is handed the winner's plan, in the same pass, and nothing is raised


SAFE = [put_with_version, merge_with_version, apply_with_version, ours]
UNSAFE = [merge_from, blind_apply, forced_apply]


@pytest.fixture(params=OBJECTS)
async def contended(request, api):
    """A kind, an object of it as both passes have cached it, and two clients."""
    kind, spec = OBJECTS[request.param]
    clients = [Client(api.transport(), World(), user_agent=name) for name in ("one", "two")]
    await crds.install(clients[0], demo.__package__)
    cached = await clients[0].create(kind("contended", api.namespace, spec=spec))
    return kind, cached, clients


async def contend(way, kind, cached, clients):
    """Both write the plan that they made on the same copy; the ids that were refused, and the one that is there."""
    refused = []
    for client, name in zip(clients, ("first", "second"), strict=True):
        try:
            await way(client, kind, cached, a_plan(name))
        except Conflict:
            refused.append(name)
    live = await clients[0].get(kind, cached.name, cached.namespace)
    return refused, (live.status.get("plan") or {}).get("id")


@pytest.mark.parametrize("way", SAFE)
async def test_first_plan_survives_a_safe_write(contended, way):
    refused, survivor = await contend(way, *contended)
    assert survivor == "first"
    assert refused == ([] if way is ours else ["second"])


@pytest.mark.parametrize("way", UNSAFE)
async def test_second_plan_replaces_the_first_after_an_unsafe_write(contended, way):
    assert await contend(way, *contended) == ([], "second")


async def test_merge_patch_from_the_original_has_no_version(contended):
    """A wrong belief: it carries no resourceVersion, so both writers are told 200 and the last one wins."""
    _, cached, clients = contended
    for client, name in zip(clients, ("first", "second"), strict=True):
        answer = await legacy.merge_from(client, cached, {"plan": a_plan(name)})
        assert answer.status["plan"]["id"] == name


async def test_locked_merge_with_a_version_before_the_own_write_always_fails(contended):
    refused, survivor = await contend(locked_merge_of_a_base_before_our_own_metadata_write, *contended)
    assert (refused, survivor) == (["first", "second"], None)


async def test_second_decision_in_the_same_process_returns_the_first_plan(contended):
    kind, cached, clients = contended
    writer = writes.Writer(clients[0], World(), "sei")
    tasks = [("anything", {})]
    made = []
    for name in ("first", "second"):
        ensure = plans.ensure(lambda draft: tasks, new_id=name, executor=name, now=NOW)
        made.append((await writes.decide(writer, kind, cached, ensure)).result["id"])
    assert made == ["first", "first"]


async def test_unrelated_write_does_not_disturb_the_decision(contended):
    """What the versioned ways pay for their safety: any write at all refuses them."""
    kind, cached, clients = contended
    touch = {"metadata": {"labels": {"someone": "else"}}}
    await clients[1].patch(kind, cached.name, cached.namespace, touch, type=PatchType.MERGE)
    with pytest.raises(Conflict):
        await put_with_version(clients[0], kind, cached, a_plan("first"))
    await ours(clients[0], kind, cached, a_plan("first"))
