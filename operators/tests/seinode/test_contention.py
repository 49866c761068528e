"""Tests of two reconciles that both write a plan, based on the same cached copy without a plan.

Every way to write the status is tested, for both kinds and on both servers. A way is safe if the first plan stays
stored. In the incident, the second writer was a reconcile with a stale cache; it could also be another process. The
server sees the same requests in both cases, so the tests use two clients. `decide` remembers the writes of its own
process, so it is tested with and without that memory.
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


def make_plan(name):
    return {"id": name, "phase": "Active", "executor": name, "generation": 1, "movedAt": NOW, "tasks": []}


async def put_with_version(client, kind, cached, plan):
    await client.replace(fl.Object({**cached, "status": {**cached.status, "plan": plan}}), subresource="status")


async def merge_with_version(client, kind, cached, plan):
    patch = {"metadata": {"resourceVersion": cached.resource_version}, "status": {"plan": plan}}
    await client.patch(kind, cached.name, cached.namespace, patch, type=PatchType.MERGE, subresource="status")


async def merge_from(client, kind, cached, plan):
    await legacy.merge_from(client, cached, {**cached.status, "plan": plan})


async def locked_merge_with_an_old_version(client, kind, cached, plan):
    """Write an annotation first, so that the resourceVersion in the merge patch is always old."""
    touch = {"metadata": {"annotations": {plan["id"]: "seen"}}}
    await client.patch(kind, cached.name, cached.namespace, touch, type=PatchType.MERGE)
    await merge_with_version(client, kind, cached, plan)


def apply_payload(cached, plan, **metadata):
    metadata = {"name": cached.name, "namespace": cached.namespace, **metadata}
    body = {"apiVersion": cached.api_version, "kind": cached.kind, "metadata": metadata, "status": {"plan": plan}}
    return fl.Object(body)


async def blind_apply(client, kind, cached, plan):
    """Apply the plan with the same field manager in both replicas, so that the server reports no conflict."""
    await client.apply(apply_payload(cached, plan), field_manager="sei", force=False, subresource="status")


async def apply_with_version(client, kind, cached, plan):
    body = apply_payload(cached, plan, resourceVersion=cached.resource_version)
    await client.apply(body, field_manager="sei", force=False, subresource="status")


async def forced_apply(client, kind, cached, plan):
    await client.apply(apply_payload(cached, plan), field_manager=plan["id"], force=True, subresource="status")


def keep_or_create(plan):
    def decide(draft):
        if not draft.status.get("plan"):
            draft.status["plan"] = plan
        return draft.status["plan"]["id"]

    return decide


async def decide_plan(client, kind, cached, plan):
    writer = writes.Writer(client, World(), "sei")
    decided = await writes.decide(writer, kind, cached, keep_or_create(plan))
    assert decided.result == "first"  # the second writer gets the first plan, without an error


SAFE = [put_with_version, merge_with_version, apply_with_version, decide_plan]
UNSAFE = [merge_from, blind_apply, forced_apply]


@pytest.fixture(params=OBJECTS)
async def contended(request, api):
    """Return a kind, the object that both reconciles have cached, and two clients."""
    kind, spec = OBJECTS[request.param]
    clients = [Client(api.transport(), World(), user_agent=name) for name in ("first", "second")]
    await crds.install(clients[0], demo.__package__)
    cached = await clients[0].create(kind("contended", api.namespace, spec=spec))
    return kind, cached, clients


async def write_two_plans(write, kind, cached, clients):
    """Write two plans, based on the same cached copy. Return the rejected plan ids and the stored plan id."""
    rejection_count = []
    for client, name in zip(clients, ("first", "second"), strict=True):
        try:
            await write(client, kind, cached, make_plan(name))
        except Conflict:
            rejection_count.append(name)
    live = await clients[0].get(kind, cached.name, cached.namespace)
    return rejection_count, (live.status.get("plan") or {}).get("id")


@pytest.mark.parametrize("write", SAFE)
async def test_first_plan_survives_a_safe_write(contended, write):
    rejection_count, survivor = await write_two_plans(write, *contended)
    assert survivor == "first"
    assert rejection_count == ([] if write is decide_plan else ["second"])


@pytest.mark.parametrize("write", UNSAFE)
async def test_second_plan_replaces_the_first_after_an_unsafe_write(contended, write):
    assert await write_two_plans(write, *contended) == ([], "second")


async def test_merge_patch_from_the_original_has_no_version(contended):
    """The report claims that MergeFrom uses optimistic locking. But both writers get 200, and the last one wins."""
    _, cached, clients = contended
    for client, name in zip(clients, ("first", "second"), strict=True):
        answer = await legacy.merge_from(client, cached, {"plan": make_plan(name)})
        assert answer.status["plan"]["id"] == name


async def test_locked_merge_with_a_version_before_the_own_write_always_fails(contended):
    rejection_count, survivor = await write_two_plans(locked_merge_with_an_old_version, *contended)
    assert (rejection_count, survivor) == (["first", "second"], None)


async def test_second_decision_in_the_same_process_returns_the_first_plan(contended):
    kind, cached, clients = contended
    writer = writes.Writer(clients[0], World(), "sei")
    tasks = [("anything", {})]
    created = []
    for name in ("first", "second"):
        ensure = plans.ensure(lambda draft: tasks, new_id=name, executor=name, now=NOW)
        created.append((await writes.decide(writer, kind, cached, ensure)).result["id"])
    assert created == ["first", "first"]


async def test_unrelated_write_does_not_disturb_the_decision(contended):
    """A write with a resourceVersion conflicts with every other write, a decision only if its reads changed."""
    kind, cached, clients = contended
    touch = {"metadata": {"labels": {"someone": "else"}}}
    await clients[1].patch(kind, cached.name, cached.namespace, touch, type=PatchType.MERGE)
    with pytest.raises(Conflict):
        await put_with_version(clients[0], kind, cached, make_plan("first"))
    await decide_plan(clients[0], kind, cached, make_plan("first"))
