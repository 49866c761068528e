"""The operator's cases, each on both servers."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
from waiting import gone, there, until

import fairlead as fl
from fairlead.api.errors import Invalid, NotFound
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead_operators import crds
from fairlead_operators.seinode import demo, kubelet, plans
from fairlead_operators.seinode.controller import op
from fairlead_operators.seinode.kinds import NODE_FINALIZER, SeiNode, SeiNodeDeployment


class Bed:
    """A cluster, a client, and ways to wait."""

    def __init__(self, api, stack):
        self.api, self.stack, self.namespace = api, stack, api.namespace
        self.client = Client(api.transport(), World(), user_agent="test")

    async def operator(self):
        running = op.running(self.api.transport(), World(), namespaces=[self.namespace])
        return await self.stack.enter_async_context(running)

    async def cluster(self, **options):
        client = Client(self.api.transport(), World(), user_agent="cluster")
        running = kubelet.running(client, World(), namespace=self.namespace, work=0.01, **options)
        return await self.stack.enter_async_context(running)

    async def create(self, name="node", **spec):
        return await self.client.create(demo.a_node(name, self.namespace, **spec))

    async def change(self, kind, name, **spec):
        await self.client.patch(kind, name, self.namespace, {"spec": spec}, type=PatchType.MERGE)

    async def get(self, kind, name="node"):
        try:
            return await self.client.get(kind, name, self.namespace)
        except NotFound:
            return None

    async def until(self, kind, name, holds):
        return await until(self.client, kind, name, self.namespace, holds)

    async def ready(self, kind=SeiNode, name="node", reason="Reconciled"):
        return await self.until(kind, name, lambda o: (o.condition("Ready") or {}).get("reason") == reason)


@pytest.fixture
async def world(api):
    async with AsyncExitStack() as stack:
        it = Bed(api, stack)
        await crds.install(it.client, demo.__package__)
        yield it


def owners(obj):
    return [ref["uid"] for ref in obj.metadata.get("ownerReferences") or () if ref.get("controller")]


async def test_a_node_runs_with_its_children(world):
    await world.cluster()
    await world.operator()
    made = await world.create()
    node = await world.until(SeiNode, "node", lambda o: o.is_true("Ready"))
    assert (node.status["phase"], node.status["currentImage"]) == ("Running", "sei:1")
    assert node.status["plan"]["phase"] == "Complete"
    assert {task["status"] for task in node.status["plan"]["tasks"]} == {"Complete"}
    assert NODE_FINALIZER in node.finalizers
    claim = await world.get(fl.PersistentVolumeClaim, "data-node")
    for child in (await world.get(fl.StatefulSet), await world.get(fl.Service), claim):
        assert owners(child) == [made.uid]


async def test_a_new_image_is_a_new_plan_and_nothing_else_is(world):
    await world.cluster()
    await world.operator()
    await world.create()
    first = await world.until(SeiNode, "node", lambda o: o.is_true("Ready"))
    await world.change(SeiNode, "node", peers=["one.example.com:26656"])
    await world.until(SeiNode, "node", lambda o: o.status["observedGeneration"] == o.generation)
    assert (await world.get(SeiNode)).status["plan"]["id"] == first.status["plan"]["id"]
    await world.change(SeiNode, "node", image="sei:2")
    second = await world.until(SeiNode, "node", lambda o: o.status["currentImage"] == "sei:2")
    assert second.status["plan"]["id"] != first.status["plan"]["id"]
    assert [task["type"] for task in second.status["plan"]["tasks"]] == ["apply-statefulset", "await-rollout"]


async def test_the_plan_is_persisted_before_anything_of_it_is_done(world):
    async with world.client.watch(SeiNode, world.namespace) as watch:
        await world.operator()
        await world.create()
        async with asyncio.timeout(20):
            async for frame in watch:
                if (node := fl.Object(json.loads(frame.raw))).status.get("plan"):
                    break
    claim = await world.until(fl.PersistentVolumeClaim, "data-node", there)
    assert int(node.resource_version) < int(claim.resource_version)
    plan = node.status["plan"]
    task = next(task for task in plan["tasks"] if task["type"] == "bootstrap")
    job = await world.until(fl.Job, f"node-bootstrap-{task['id'][:8]}", there)
    assert job.labels["sei.io/plan"] == plan["id"]


async def test_two_replicas_make_one_plan_and_one_job(world):
    ids = {}
    await world.cluster()
    await world.operator()
    await world.operator()
    names = [f"node-{i}" for i in range(5)]
    async with world.client.watch(SeiNode, world.namespace) as watch:
        await asyncio.gather(*(world.create(name) for name in names))
        running = set()
        async with asyncio.timeout(30):
            async for frame in watch:
                node = fl.Object(json.loads(frame.raw))
                if plan := node.status.get("plan"):
                    ids.setdefault(node.name, set()).add(plan["id"])
                if node.is_true("Ready"):
                    running.add(node.name)
                if len(running) == len(names):
                    break
    assert {name: len(seen) for name, seen in ids.items()} == dict.fromkeys(names, 1)


async def test_a_plan_whose_executor_is_gone_is_taken_over(world):
    await world.cluster()
    await world.create()
    plan = {"id": "dead", "phase": "Active", "executor": "gone", "generation": 1, "movedAt": "2020-01-01T00:00:00Z"}
    plan["tasks"] = [plans.task("dead", 0, "ensure-volume", {})]
    status = {"status": {"plan": plan}}
    await world.client.patch(SeiNode, "node", world.namespace, status, type=PatchType.MERGE, subresource="status")
    await world.operator()
    node = await world.until(SeiNode, "node", lambda o: o.status["plan"]["phase"] == "Complete")
    assert node.status["plan"]["id"] == "dead"
    assert node.status["plan"]["executor"] != "gone"


async def test_a_failed_task_is_said_and_a_changed_spec_tries_again(world):
    await world.cluster(failing=True)
    await world.operator()
    await world.create()
    node = await world.ready(reason="PlanFailed")
    assert node.status["phase"] == "Failed"
    assert "backoff limit" in node.condition("Ready")["message"]
    assert (node.status["plan"]["phase"], node.status["plan"]["failedTaskIndex"]) == ("Failed", 1)
    await world.change(SeiNode, "node", image="sei:2")
    await world.until(SeiNode, "node", lambda o: o.status["plan"]["id"] != node.status["plan"]["id"])


async def test_a_deployment_makes_its_nodes_and_prunes_the_surplus(world):
    await world.cluster()
    await world.operator()
    spec = {"replicas": 3, "template": {"spec": demo.a_node("x")["spec"]}}
    await world.client.create(SeiNodeDeployment("group", world.namespace, spec=spec))
    done = await world.until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready"))
    assert done.status["nodes"] == ["group-0", "group-1", "group-2"]
    assert done.status["plan"]["phase"] == "Complete"
    await world.change(SeiNodeDeployment, "group", replicas=1)
    await world.until(SeiNode, "group-2", gone)
    assert await world.get(SeiNode, "group-0") is not None


async def test_surplus_nodes_that_would_be_retained_are_pruned_and_those_of_an_earlier_deployment_are_not(world):
    await world.cluster()
    await world.operator()
    spec = {"replicas": 2, "deletionPolicy": "Retain", "template": {"spec": demo.a_node("x")["spec"]}}
    await world.client.create(SeiNodeDeployment("group", world.namespace, spec=spec))
    await world.until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready"))
    await world.client.delete(SeiNodeDeployment, "group", world.namespace)
    await world.until(SeiNodeDeployment, "group", gone)
    await world.client.create(SeiNodeDeployment("group", world.namespace, spec={**spec, "replicas": 1}))
    await world.until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready"))
    assert not (await world.get(SeiNode, "group-1")).deleting  # retained, and never this one's
    await world.change(SeiNodeDeployment, "group", replicas=3)
    await world.until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready") and o.status["replicas"] == 3)
    await world.change(SeiNodeDeployment, "group", replicas=1)
    for surplus in ("group-1", "group-2"):
        await world.until(SeiNode, surplus, gone)
    assert not (await world.get(SeiNode, "group-0")).deleting


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
async def test_nodes_go_with_their_deployment_unless_retained(world, policy):
    await world.cluster()
    await world.operator()
    spec = {"replicas": 1, "deletionPolicy": policy, "template": {"spec": demo.a_node("x")["spec"]}}
    await world.client.create(SeiNodeDeployment("group", world.namespace, spec=spec))
    await world.until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready"))
    await world.client.delete(SeiNodeDeployment, "group", world.namespace)
    await world.until(SeiNodeDeployment, "group", gone)
    node = await world.get(SeiNode, "group-0")
    assert (node is None) if policy == "Delete" else (node is not None and not node.deleting and not owners(node))


async def test_the_data_goes_with_the_node_and_an_imported_volume_stays(world):
    await world.operator()
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await world.client.create(fl.PersistentVolumeClaim("mine", world.namespace, spec=claim))
    await world.create("importing", dataVolume={"import": {"pvcName": "mine"}})
    await world.create("plain")
    await world.until(fl.PersistentVolumeClaim, "data-plain", there)
    for name in ("importing", "plain"):
        await world.client.delete(SeiNode, name, world.namespace)
        await world.until(SeiNode, name, gone)
    left = await world.get(fl.PersistentVolumeClaim, "data-plain")
    assert left is None or left.deleting
    assert await world.get(fl.PersistentVolumeClaim, "data-importing") is None
    assert not (await world.get(fl.PersistentVolumeClaim, "mine")).deleting


async def test_a_volume_that_is_not_there_is_named_and_its_coming_is_noticed(world):
    running = await world.operator()
    await world.cluster()
    await world.create(dataVolume={"import": {"pvcName": "mine"}})
    said = (await world.ready(reason="VolumeMissing")).condition("Ready")["message"]
    assert "no PersistentVolumeClaim mine: create it" in said
    await running.quiet()
    assert (await world.get(SeiNode)).status.get("plan") is None  # nothing is begun that cannot be carried out
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await world.client.create(fl.PersistentVolumeClaim("mine", world.namespace, spec=claim))
    await world.ready()


async def test_a_volume_that_goes_while_the_plan_is_carried_out_is_named(world):
    await world.operator()
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await world.client.create(fl.PersistentVolumeClaim("mine", world.namespace, spec=claim))
    await world.create(dataVolume={"import": {"pvcName": "mine"}})
    await world.ready(reason="PlanActive")
    bare = {"metadata": {"finalizers": None}}
    await world.client.patch(fl.PersistentVolumeClaim, "mine", world.namespace, bare, type=PatchType.MERGE)
    await world.client.delete(fl.PersistentVolumeClaim, "mine", world.namespace)
    said = (await world.ready(reason="VolumeMissing")).condition("Ready")["message"]
    assert "no PersistentVolumeClaim mine: create it" in said


async def test_what_a_plan_waits_for_is_named(world):
    await world.operator()
    await world.create()
    node = await world.ready(reason="PlanActive")
    job = next(task for task in node.status["plan"]["tasks"] if task["type"] == "bootstrap")["id"][:8]
    said = f"bootstrap waits for Job node-bootstrap-{job}: see kubectl describe job node-bootstrap-{job}"
    assert said in node.condition("Ready")["message"]
    spec = {"replicas": 1, "template": {"spec": demo.a_node("x")["spec"]}}
    await world.client.create(SeiNodeDeployment("group", world.namespace, spec=spec))
    group = await world.ready(SeiNodeDeployment, "group", reason="PlanActive")
    assert "await-nodes waits for SeiNode group-0: see its condition Ready" in group.condition("Ready")["message"]
    await world.cluster()
    await world.ready()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"validator": {}}, "exactly one"),
        ({"image": ""}, "image"),
        ({"chainId": "x" * 64}, "chainId"),
        ({"podLabels": {"team": "a b"}}, "the value of a label is"),
        ({"podLabels": {"a b": "team"}}, "the key of a label is"),
        ({"overrides": {"": "x"}}, "the name of a setting is"),
        ({"dataVolume": {"size": "lots"}}, "such as 500Gi"),
        ({"dataVolume": {"size": "0Gi"}}, "such as 500Gi"),
    ],
    ids=["two modes", "no image", "chain id too long", "label", "label's key", "setting", "size", "no size"],
)
async def test_a_spec_that_makes_no_sense_is_refused_by_the_schema(world, spec, said):
    with pytest.raises(Invalid, match=said):
        await world.create(**spec)
    template = {"spec": {**demo.a_node("x")["spec"], **spec}}
    with pytest.raises(Invalid, match=said):
        await world.client.create(SeiNodeDeployment("group", world.namespace, spec={"template": template}))


@pytest.mark.parametrize("name", ["a.b", "1a"])
async def test_a_name_that_no_service_can_have_is_refused_by_the_schema(world, name):
    with pytest.raises(Invalid, match="Services are named after it"):
        await world.create(name)


async def test_a_name_too_long_for_its_children_is_refused_by_the_schema(world):
    with pytest.raises(Invalid, match="at most 44 characters"):
        await world.create("n" * 45)
