"""Tests that `fairlead demo --kubeconfig` deletes everything it created and changes no other objects."""

import asyncio
import base64
import json
import signal
import sys

import pytest
from waiting import PATIENCE, until

import fairlead as fl
from fairlead.api.builtin import CustomResourceDefinition
from fairlead.api.errors import NotFound
from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.testing.demo.cleanup import finish_despite_cancel
from fairlead.testing.demo.demo_run import DEMO_LABEL, VARIANTS
from fairlead.testing.demo.outcomes import load_demo, play
from fairlead_operators import crds
from fairlead_operators.projects.kinds import Project

DEMO = [sys.executable, "-m", "fairlead", "demo"]
OWN, SHARED = (
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.demo.example.com"},
        "spec": {
            "group": "demo.example.com",
            "names": {"kind": plural[:-1].title(), "plural": plural},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    for plural in ("cans", "bins")
)
Can, Bin = fl.kind("demo.example.com/v1", "Can"), fl.kind("demo.example.com/v1", "Bin")


class FailingDemo:
    """A demo that fails and leaves objects with finalizers behind."""

    SCALE = 1

    async def play(self, run, variant, scale):
        client, finalizers = run.client("operator"), {"finalizers": ["example.com/held"]}
        for obj in (
            fl.Namespace(f"{run.namespace}-more"),
            fl.ConfigMap("held", run.namespace),
            fl.ConfigMap("held", f"{run.namespace}-more"),
            fl.ClusterRole(f"role-of-{run.namespace}", rules=[]),
            fl.ConfigMap("held", "default"),
        ):
            obj["metadata"].update(finalizers if obj.kind == "ConfigMap" else {})
            await client.create(obj)
        await run.admin.create(fl.ClusterRole("role-that-came-along", labels=run.labels, rules=[]))
        for crd, kind in ((OWN, Can), (SHARED, Bin)):
            labelled = {**crd, "metadata": {**crd["metadata"], "labels": run.labels}}
            await run.admin.create(labelled)
            await until(run.admin, CustomResourceDefinition, crd["metadata"]["name"], None, is_served)
            obj = kind("held", run.namespace)
            obj["metadata"].update(finalizers)
            await run.admin.create(obj)
        await run.admin.create(Bin("theirs", "default"))
        raise RuntimeError("in the middle")


def is_served(crd):
    return crd is not None and crd.is_true("Established")


async def test_cleanup_removes_demo_objects_and_keeps_all_others(api):
    client, demo_namespace = Client(api.transport(), World()), f"{api.namespace}-demo"
    with pytest.raises(RuntimeError, match="in the middle"):
        await play(FailingDemo(), "new", 1, api.transport, World(), namespace=demo_namespace)
    for namespace in (demo_namespace, f"{demo_namespace}-more"):
        try:  # the embedded server may have deleted it already
            assert not (await client.get(fl.ConfigMap, "held", namespace)).finalizers
            assert (await client.get(fl.Namespace, namespace)).deleting
        except NotFound:
            continue
    for kind, name in (
        (fl.ClusterRole, f"role-of-{demo_namespace}"),
        (fl.ClusterRole, "role-that-came-along"),
        (CustomResourceDefinition, OWN["metadata"]["name"]),
    ):
        with pytest.raises(NotFound):
            await client.get(kind, name)
    assert (await client.get(Bin, "theirs", "default")).uid  # and so is their CRD
    theirs = await client.get(fl.ConfigMap, "held", "default")
    assert theirs.finalizers == ["example.com/held"]
    await client.patch(fl.ConfigMap, "held", "default", {"metadata": {"finalizers": None}}, type=PatchType.MERGE)
    await client.delete(fl.ConfigMap, "held", "default")
    await client.delete(CustomResourceDefinition, SHARED["metadata"]["name"])


class CRDDemo:
    """A demo that only installs CRDs."""

    SCALE = 1

    async def play(self, run, variant, scale):
        for crd in (OWN, SHARED):
            await run.admin.create({**crd, "metadata": {**crd["metadata"], "labels": run.labels}})
            await until(run.admin, CustomResourceDefinition, crd["metadata"]["name"], None, is_served)


class Interrupting:
    """A transport that cancels a task when the first CRD is deleted."""

    def __init__(self, inner, cancel):
        self.inner, self.cancel = inner, cancel

    def __getattr__(self, name):
        return getattr(self.inner, name)

    async def request(self, request):
        response = await self.inner.request(request)
        if request.method == "DELETE" and "customresourcedefinitions" in request.path and self.cancel:
            self.cancel.pop()()
        return response


async def test_first_signal_does_not_stop_the_cleanup(api):
    cancel, demo_namespace = [], f"{api.namespace}-cut"
    playing = asyncio.create_task(
        play(CRDDemo(), "new", 1, lambda: Interrupting(api.transport(), cancel), World(), namespace=demo_namespace)
    )
    cancel.append(playing.cancel)
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert not cancel
    for crd in (OWN, SHARED):
        with pytest.raises(NotFound):
            await Client(api.transport(), World()).get(CustomResourceDefinition, crd["metadata"]["name"])


@pytest.mark.parametrize("when", ["before", "during"])
async def test_second_signal_stops_the_cleanup(when):
    begun, never, ended = asyncio.Event(), asyncio.Event(), []

    async def clean_up():
        begun.set()
        try:
            await never.wait()
        except asyncio.CancelledError:
            ended.append("cut")
            raise

    async def main():
        try:
            if when == "before":
                await never.wait()
        finally:
            await finish_despite_cancel(clean_up())

    task = asyncio.create_task(main())
    if when == "before":
        await asyncio.sleep(0)
        task.cancel()
        await begun.wait()
    else:
        await begun.wait()
        task.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
    assert not ended
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cut"]


@pytest.mark.parametrize("variant", VARIANTS)
async def test_projects_demo_does_not_touch_other_projects(api, variant):
    client, projects_demo = Client(api.transport(), World()), load_demo("projects")
    await crds.install(client, "fairlead_operators.projects")
    before = await client.create(Project(f"{api.namespace}-of-a-user"))
    await play(projects_demo, variant, 1, api.transport, World(), namespace=f"{api.namespace}-demo")
    after = await client.get(Project, before.name)
    assert after.resource_version == before.resource_version
    with pytest.raises(NotFound):
        await client.get(fl.Namespace, before.name)


@pytest.mark.parametrize(("signal_sent", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_interrupted_demo_deletes_its_objects(api, tmp_path, signal_sent, exit_code):
    client, kubeconfig = Client(api.transport(), World()), tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config_of(api)))
    command = [*DEMO, "projects", "--scale", "2", "--kubeconfig", str(kubeconfig)]
    running = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        demo_namespace = await wait_for_running_demo(client)
        running.send_signal(signal_sent)
        _, stderr = await running.communicate()
    finally:
        if running.returncode is None:
            running.kill()
    assert (running.returncode, b"Traceback" in stderr) == (exit_code, False), stderr
    for kind in (fl.Namespace, fl.ClusterRole, fl.ClusterRoleBinding, CustomResourceDefinition):
        remaining = (await client.list(kind)).items
        demo_objects = [
            obj for obj in remaining if demo_namespace in obj.name or obj.labels.get(DEMO_LABEL) == demo_namespace
        ]
        assert not [obj.name for obj in demo_objects if not obj.deleting]


@pytest.mark.rbac
@pytest.mark.parametrize("may", ["nothing", "everything but metrics"])
async def test_account_without_permissions_gets_a_one_line_error(api, tmp_path, may):
    client, kubeconfig = Client(api.transport(), World()), tmp_path / "kubeconfig"
    name = f"{api.namespace}-limited"
    await client.create(fl.ServiceAccount("limited", api.namespace))
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}] if may != "nothing" else []
    await client.create(fl.ClusterRole(name, rules=rules))
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subjects = [{"kind": "ServiceAccount", "name": "limited", "namespace": api.namespace}]
    await client.create(fl.ClusterRoleBinding(name, roleRef=reference, subjects=subjects))
    path = f"/api/v1/namespaces/{api.namespace}/serviceaccounts/limited/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    headers, body = {"Content-Type": "application/json"}, json.dumps(request).encode()
    response = await api.transport().request(HttpRequest("POST", path, headers=headers, body=body))
    kubeconfig.write_text(json.dumps(config_of(api, json.loads(response.body)["status"]["token"])))
    command = [*DEMO, "pulsar", "--scale", "1", "--kubeconfig", str(kubeconfig)]
    running = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, stderr = await running.communicate()
    (line,) = stderr.decode().splitlines()
    assert running.returncode != 0
    assert "needs a cluster admin" in line if may == "nothing" else "GET /metrics" in line


async def wait_for_running_demo(client):
    """Wait until a demo has created the namespace of a project, and return the demo's namespace."""
    async with asyncio.timeout(PATIENCE), client.watch(fl.Namespace, initial_events=True) as frames:
        async for frame in frames:
            created = fl.Object(json.loads(frame.raw))
            demo_namespace, separator, _ = (
                created.name.partition("-project-") if frame.type != "BOOKMARK" else ("", "", "")
            )
            if separator and demo_namespace.startswith("fairlead-demo-projects-") and not created.deleting:
                return demo_namespace
    raise AssertionError("the watch ended")


def config_of(api, token=None):
    cluster = {"server": api.url, "certificate-authority-data": base64.b64encode(api.ca_data).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": api.name, "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token or api.token}}],
        "contexts": [{"name": api.name, "context": {"cluster": api.name, "user": "admin"}}],
        "current-context": api.name,
    }
