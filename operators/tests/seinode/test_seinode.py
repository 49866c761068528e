"""The behaviour of the operator, on both servers."""

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
from fairlead_operators.seinode import demo, plans, simulated_cluster
from fairlead_operators.seinode.controller import op
from fairlead_operators.seinode.kinds import NODE_FINALIZER, SeiNode, SeiNodeDeployment


class Environment:
    """A namespace and a client, with methods that start the operator and the simulated cluster, and wait."""

    def __init__(self, api, stack):
        self.api, self.stack, self.namespace = api, stack, api.namespace
        self.client = Client(api.transport(), World(), user_agent="test")

    async def operator(self):
        running = op.running(self.api.transport(), World(), namespaces=[self.namespace])
        return await self.stack.enter_async_context(running)

    async def cluster(self, **options):
        client = Client(self.api.transport(), World(), user_agent="cluster")
        running = simulated_cluster.running(client, World(), namespace=self.namespace, duration=0.01, **options)
        return await self.stack.enter_async_context(running)

    async def create(self, name="node", **spec):
        return await self.client.create(demo.make_node(name, self.namespace, **spec))

    async def change(self, kind, name, **spec):
        await self.client.patch(kind, name, self.namespace, {"spec": spec}, type=PatchType.MERGE)

    async def get(self, kind, name="node"):
        try:
            return await self.client.get(kind, name, self.namespace)
        except NotFound:
            return None

    async def wait_until(self, kind, name, condition):
        return await until(self.client, kind, name, self.namespace, condition)

    async def wait_until_ready(self, kind=SeiNode, name="node", reason="Reconciled"):
        return await self.wait_until(kind, name, lambda o: (o.condition("Ready") or {}).get("reason") == reason)


@pytest.fixture
async def env(api):
    async with AsyncExitStack() as stack:
        environment = Environment(api, stack)
        await crds.install(environment.client, demo.__package__)
        yield environment


def owners(obj):
    return [ref["uid"] for ref in obj.metadata.get("ownerReferences") or () if ref.get("controller")]


async def test_node_becomes_ready_with_its_children(env):
    await env.cluster()
    await env.operator()
    created = await env.create()
    node = await env.wait_until(SeiNode, "node", lambda o: o.is_true("Ready"))
    assert (node.status["phase"], node.status["currentImage"]) == ("Running", "sei:1")
    assert node.status["plan"]["phase"] == "Complete"
    assert {task["status"] for task in node.status["plan"]["tasks"]} == {"Complete"}
    assert NODE_FINALIZER in node.finalizers
    claim = await env.get(fl.PersistentVolumeClaim, "data-node")
    for child in (await env.get(fl.StatefulSet), await env.get(fl.Service), claim):
        assert owners(child) == [created.uid]


async def test_only_a_new_image_starts_a_new_plan(env):
    await env.cluster()
    await env.operator()
    await env.create()
    first = await env.wait_until(SeiNode, "node", lambda o: o.is_true("Ready"))
    await env.change(SeiNode, "node", peers=["one.example.com:26656"])
    await env.wait_until(SeiNode, "node", lambda o: o.status["observedGeneration"] == o.generation)
    assert (await env.get(SeiNode)).status["plan"]["id"] == first.status["plan"]["id"]
    await env.change(SeiNode, "node", image="sei:2")
    second = await env.wait_until(SeiNode, "node", lambda o: o.status["currentImage"] == "sei:2")
    assert second.status["plan"]["id"] != first.status["plan"]["id"]
    assert [task["type"] for task in second.status["plan"]["tasks"]] == ["apply-statefulset", "await-rollout"]


async def test_plan_is_persisted_before_its_first_task_runs(env):
    async with env.client.watch(SeiNode, env.namespace) as watch:
        await env.operator()
        await env.create()
        async with asyncio.timeout(20):
            async for frame in watch:
                if (node := fl.Object(json.loads(frame.raw))).status.get("plan"):
                    break
    claim = await env.wait_until(fl.PersistentVolumeClaim, "data-node", there)
    assert int(node.resource_version) < int(claim.resource_version)
    plan = node.status["plan"]
    task = next(task for task in plan["tasks"] if task["type"] == "bootstrap")
    job = await env.wait_until(fl.Job, f"node-bootstrap-{task['id'][:8]}", there)
    assert job.labels["sei.io/plan"] == plan["id"]


async def test_two_replicas_create_one_plan_and_one_job(env):
    ids = {}
    await env.cluster()
    await env.operator()
    await env.operator()
    names = [f"node-{i}" for i in range(5)]
    async with env.client.watch(SeiNode, env.namespace) as watch:
        await asyncio.gather(*(env.create(name) for name in names))
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
    assert {name: len(plan_ids) for name, plan_ids in ids.items()} == dict.fromkeys(names, 1)


async def test_plan_of_a_dead_executor_is_taken_over(env):
    await env.cluster()
    await env.create()
    plan = {"id": "dead", "phase": "Active", "executor": "gone", "generation": 1, "movedAt": "2020-01-01T00:00:00Z"}
    plan["tasks"] = [plans.make_task("dead", 0, "ensure-volume", {})]
    status = {"status": {"plan": plan}}
    await env.client.patch(SeiNode, "node", env.namespace, status, type=PatchType.MERGE, subresource="status")
    await env.operator()
    node = await env.wait_until(SeiNode, "node", lambda o: o.status["plan"]["phase"] == "Complete")
    assert node.status["plan"]["id"] == "dead"
    assert node.status["plan"]["executor"] != "gone"


async def test_failed_task_is_reported_and_a_new_spec_retries(env):
    await env.cluster(jobs_fail=True)
    await env.operator()
    await env.create()
    node = await env.wait_until_ready(reason="PlanFailed")
    assert node.status["phase"] == "Failed"
    assert "backoff limit" in node.condition("Ready")["message"]
    assert (node.status["plan"]["phase"], node.status["plan"]["failedTaskIndex"]) == ("Failed", 1)
    await env.change(SeiNode, "node", image="sei:2")
    await env.wait_until(SeiNode, "node", lambda o: o.status["plan"]["id"] != node.status["plan"]["id"])


async def test_deployment_creates_its_nodes_and_deletes_surplus_ones(env):
    await env.cluster()
    await env.operator()
    spec = {"replicas": 3, "template": {"spec": demo.make_node("x")["spec"]}}
    await env.client.create(SeiNodeDeployment("group", env.namespace, spec=spec))
    ready_deployment = await env.wait_until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready"))
    assert ready_deployment.status["nodes"] == ["group-0", "group-1", "group-2"]
    assert ready_deployment.status["plan"]["phase"] == "Complete"
    await env.change(SeiNodeDeployment, "group", replicas=1)
    await env.wait_until(SeiNode, "group-2", gone)
    assert await env.get(SeiNode, "group-0") is not None


async def test_scale_down_deletes_own_nodes_but_not_those_of_an_earlier_deployment(env):
    await env.cluster()
    await env.operator()
    spec = {"replicas": 2, "deletionPolicy": "Retain", "template": {"spec": demo.make_node("x")["spec"]}}
    await env.client.create(SeiNodeDeployment("group", env.namespace, spec=spec))
    await env.wait_until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready"))
    await env.client.delete(SeiNodeDeployment, "group", env.namespace)
    await env.wait_until(SeiNodeDeployment, "group", gone)
    await env.client.create(SeiNodeDeployment("group", env.namespace, spec={**spec, "replicas": 1}))
    await env.wait_until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready"))
    assert not (await env.get(SeiNode, "group-1")).deleting  # it belongs to the earlier deployment
    await env.change(SeiNodeDeployment, "group", replicas=3)
    await env.wait_until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready") and o.status["replicas"] == 3)
    await env.change(SeiNodeDeployment, "group", replicas=1)
    for surplus in ("group-1", "group-2"):
        await env.wait_until(SeiNode, surplus, gone)
    assert not (await env.get(SeiNode, "group-0")).deleting


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
async def test_nodes_are_deleted_with_their_deployment_unless_retained(env, policy):
    await env.cluster()
    await env.operator()
    spec = {"replicas": 1, "deletionPolicy": policy, "template": {"spec": demo.make_node("x")["spec"]}}
    await env.client.create(SeiNodeDeployment("group", env.namespace, spec=spec))
    await env.wait_until(SeiNodeDeployment, "group", lambda o: o.is_true("Ready"))
    await env.client.delete(SeiNodeDeployment, "group", env.namespace)
    await env.wait_until(SeiNodeDeployment, "group", gone)
    node = await env.get(SeiNode, "group-0")
    assert (node is None) if policy == "Delete" else (node is not None and not node.deleting and not owners(node))


async def test_deleting_a_node_deletes_its_claim_but_not_an_imported_one(env):
    await env.operator()
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await env.client.create(fl.PersistentVolumeClaim("mine", env.namespace, spec=claim))
    await env.create("importing", dataVolume={"import": {"pvcName": "mine"}})
    await env.create("plain")
    await env.wait_until(fl.PersistentVolumeClaim, "data-plain", there)
    for name in ("importing", "plain"):
        await env.client.delete(SeiNode, name, env.namespace)
        await env.wait_until(SeiNode, name, gone)
    remaining = await env.get(fl.PersistentVolumeClaim, "data-plain")
    assert remaining is None or remaining.deleting
    assert await env.get(fl.PersistentVolumeClaim, "data-importing") is None
    assert not (await env.get(fl.PersistentVolumeClaim, "mine")).deleting


async def test_missing_volume_is_reported_and_its_creation_noticed(env):
    running = await env.operator()
    await env.cluster()
    await env.create(dataVolume={"import": {"pvcName": "mine"}})
    message = (await env.wait_until_ready(reason="VolumeMissing")).condition("Ready")["message"]
    assert "PersistentVolumeClaim mine does not exist: create it" in message
    await running.wait_until_idle()
    assert (await env.get(SeiNode)).status.get("plan") is None  # no plan without the volume
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await env.client.create(fl.PersistentVolumeClaim("mine", env.namespace, spec=claim))
    await env.wait_until_ready()


async def test_volume_deleted_during_a_plan_is_reported(env):
    await env.operator()
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await env.client.create(fl.PersistentVolumeClaim("mine", env.namespace, spec=claim))
    await env.create(dataVolume={"import": {"pvcName": "mine"}})
    await env.wait_until_ready(reason="PlanActive")
    patch = {"metadata": {"finalizers": None}}
    await env.client.patch(fl.PersistentVolumeClaim, "mine", env.namespace, patch, type=PatchType.MERGE)
    await env.client.delete(fl.PersistentVolumeClaim, "mine", env.namespace)
    message = (await env.wait_until_ready(reason="VolumeMissing")).condition("Ready")["message"]
    assert "PersistentVolumeClaim mine does not exist: create it" in message


async def test_condition_names_what_a_plan_waits_for(env):
    await env.operator()
    await env.create()
    node = await env.wait_until_ready(reason="PlanActive")
    job = next(task for task in node.status["plan"]["tasks"] if task["type"] == "bootstrap")["id"][:8]
    message = f"bootstrap waits for Job node-bootstrap-{job}: see kubectl describe job node-bootstrap-{job}"
    assert message in node.condition("Ready")["message"]
    spec = {"replicas": 1, "template": {"spec": demo.make_node("x")["spec"]}}
    await env.client.create(SeiNodeDeployment("group", env.namespace, spec=spec))
    group = await env.wait_until_ready(SeiNodeDeployment, "group", reason="PlanActive")
    assert "await-nodes waits for SeiNode group-0: see its condition Ready" in group.condition("Ready")["message"]
    await env.cluster()
    await env.wait_until_ready()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"validator": {}}, "exactly one"),
        ({"image": ""}, "image"),
        ({"chainId": "x" * 64}, "chainId"),
        ({"podLabels": {"team": "a b"}}, "the value of a label must"),
        ({"podLabels": {"a b": "team"}}, "the key of a label must"),
        ({"overrides": {"": "x"}}, "the name of a setting must"),
        ({"dataVolume": {"size": "lots"}}, "such as 500Gi"),
        ({"dataVolume": {"size": "0Gi"}}, "such as 500Gi"),
    ],
    ids=["two modes", "no image", "chain id too long", "label", "label's key", "setting", "size", "not a size"],
)
async def test_schema_rejects_an_invalid_spec(env, spec, message):
    with pytest.raises(Invalid, match=message):
        await env.create(**spec)
    template = {"spec": {**demo.make_node("x")["spec"], **spec}}
    with pytest.raises(Invalid, match=message):
        await env.client.create(SeiNodeDeployment("group", env.namespace, spec={"template": template}))


@pytest.mark.parametrize("name", ["a.b", "1a"])
async def test_schema_rejects_a_name_that_no_service_can_have(env, name):
    with pytest.raises(Invalid, match="because Services are named after it"):
        await env.create(name)


async def test_schema_rejects_a_name_too_long_for_the_children(env):
    with pytest.raises(Invalid, match="at most 44 characters"):
        await env.create("n" * 45)
