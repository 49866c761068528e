"""The behaviour of the operator, on both servers."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml
from waiting import eventually, there, until

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client, PatchType
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.testing.network import CountingTransport
from fairlead_operators.projects import demo, gitops, legacy, rbac
from fairlead_operators.projects.controller import op
from fairlead_operators.projects.kinds import (
    COMPONENT,
    FINALIZER,
    KEEP_NAMESPACE,
    PROJECT_LABEL,
    Project,
    Stage,
    Warehouse,
)

READ = "kargo-controller-read-secrets"


class Environment:
    """A system namespace, the name of a project, a client, and helpers that wait."""

    def __init__(self, api, stack):
        self.api, self.stack = api, stack
        self.system, self.name = f"{api.namespace}-kargo", f"{api.namespace}-project"
        self.client = Client(api.transport(), World(), user_agent="test")

    async def operator(self, transport=None, **resources):
        options = {"resources": {"system": self.system, **resources}}
        return await self.stack.enter_async_context(op.running(transport or self.api.transport(), World(), **options))

    async def create(self, **annotations):
        project = await self.client.create(Project(self.name, annotations=annotations))
        await self.wait_until(Project, None, lambda o: o.is_true("Ready"))
        return project

    async def get(self, kind, name=None, namespace=None):
        try:
            return await self.client.get(kind, name or self.name, self.name if kind.namespaced else None)
        except NotFound:
            return None

    async def wait_until(self, kind, name, condition):
        return await until(self.client, kind, name or self.name, self.name if kind.namespaced else None, condition)

    async def controller(self, name="kargo-controller"):
        return await self.client.create(fl.ServiceAccount(name, self.system, labels={COMPONENT: "controller"}))

    async def merge(self, kind, name, patch, subresource=None):
        namespace = self.name if kind.namespaced else None
        return await self.client.patch(kind, name, namespace, patch, type=PatchType.MERGE, subresource=subresource)


@pytest.fixture
async def env(api):
    async with AsyncExitStack() as stack:
        environment = Environment(api, stack)
        await demo.install(environment.client, environment.system)
        yield environment


def is_deleted(obj):
    return obj is None or obj.deleting


async def test_project_gets_a_namespace_and_thirteen_objects(env):
    await env.operator()
    await env.create()
    namespace = await env.get(fl.Namespace)
    assert (namespace.labels[PROJECT_LABEL], FINALIZER in namespace.finalizers) == ("true", True)
    objects = {kind.kind: (await env.client.list(kind, env.name)).items for kind in (fl.Role, fl.RoleBinding)}
    assert sorted(role.name for role in objects["Role"]) == ["kargo-admin", "kargo-promoter", "kargo-viewer"]
    assert sorted(obj.name for obj in objects["RoleBinding"]) == [
        "kargo-admin",
        "kargo-project-admin",
        "kargo-project-secrets-reader",
        "kargo-promoter",
        "kargo-viewer",
    ]
    for name in rbac.DEFAULT_ROLES:
        assert await env.get(fl.ServiceAccount, name)
    for kind in (fl.ClusterRole, fl.ClusterRoleBinding):
        assert await env.get(kind, f"kargo-project-admin-{env.name}")


async def test_user_edits_of_roles_are_kept(env):
    await env.operator()
    await env.create()
    edited = await env.merge(fl.Role, "kargo-viewer", {"rules": gitops.EDITED})
    await env.merge(Project, env.name, {"metadata": {"labels": {"wake": "up"}}})
    await env.client.create(Warehouse("images", env.name, spec={}))
    await env.wait_until(Project, None, lambda o: o.status["stats"]["warehouses"]["count"] == 1)
    assert (await env.get(fl.Role, "kargo-viewer")).resource_version == edited.resource_version


async def test_edited_system_binding_is_restored_and_foreign_metadata_kept(env):
    await env.operator()
    await env.create()
    patch = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}, "finalizers": ["example.com/mine"]}}
    await env.merge(fl.RoleBinding, "kargo-project-admin", {**patch, "subjects": []})
    after = await env.wait_until(fl.RoleBinding, "kargo-project-admin", lambda o: len(o.get("subjects") or ()) == 2)
    assert (after.labels["team"], after.annotations["note"]) == ("a", "b")
    assert after.finalizers == ["example.com/mine"]
    await env.merge(fl.RoleBinding, "kargo-project-admin", {"metadata": {"finalizers": None}})


async def test_binding_is_recreated_when_its_role_ref_differs(env):
    await env.client.create(fl.Namespace(env.name, labels={PROJECT_LABEL: "true"}))
    wrong = rbac.make_binding("kargo-project-admin", env.name, "ClusterRole", "view", [("kargo-api", env.system)])
    before = await env.client.create(wrong)
    await env.operator()
    await env.create()
    after = await env.get(fl.RoleBinding, "kargo-project-admin")
    assert (after["roleRef"]["name"], after.uid != before.uid) == ("kargo-project-admin", True)


async def test_controller_account_is_bound_in_projects_until_it_is_deleted(env):
    await env.operator()
    await env.create()
    await env.controller()
    bound = await env.wait_until(fl.RoleBinding, READ, there)
    assert [subject["namespace"] for subject in bound["subjects"]] == [env.system]
    await env.client.delete(fl.ServiceAccount, "kargo-controller", env.system)
    await env.wait_until(fl.RoleBinding, READ, is_deleted)


async def test_status_counts_healthy_warehouses_and_stages(env):
    await env.operator()
    await env.create()
    for kind in (Warehouse, Stage):
        await env.client.create(kind("one", env.name, spec={}))
        await env.merge(kind, "one", {"status": {"health": {"status": "Healthy"}}}, "status")
    healthy = {"count": 1, "healthy": 1}
    want = {"warehouses": healthy, "stages": healthy}
    await env.wait_until(Project, None, lambda o: o.status["stats"] == want and o.is_true("Healthy"))
    await env.merge(Stage, "one", {"status": {"health": {"status": "Unhealthy"}}}, "status")
    await env.wait_until(Project, None, lambda o: not o.is_true("Healthy"))


@pytest.mark.parametrize("keeps_namespace", [False, True], ids=["by default", "keep-namespace"])
async def test_cleanup_deletes_cluster_roles_and_the_namespace_unless_kept(env, keeps_namespace):
    await env.operator()
    await env.create(**({KEEP_NAMESPACE: "true"} if keeps_namespace else {}))
    await env.client.delete(Project, env.name)
    await env.wait_until(Project, None, lambda o: o is None)
    for kind in (fl.ClusterRole, fl.ClusterRoleBinding):
        assert await env.get(kind, f"kargo-project-admin-{env.name}") is None
    namespace = await env.get(fl.Namespace)
    assert is_deleted(namespace) is not keeps_namespace
    assert namespace is None or FINALIZER not in namespace.finalizers


async def test_project_is_deleted_when_its_namespace_is_deleted(env):
    await env.operator()
    await env.create()
    await env.client.delete(fl.Namespace, env.name)
    await env.wait_until(Project, None, lambda o: o is None)
    namespace = await env.get(fl.Namespace)
    assert namespace is None or FINALIZER not in namespace.finalizers


async def test_recreated_project_waits_for_the_old_namespace_to_terminate(env):
    running = await env.operator()
    await env.create()
    patch = {"metadata": {"finalizers": [FINALIZER, "example.com/mine"]}}
    await env.merge(fl.Namespace, env.name, patch)
    await env.client.delete(Project, env.name)
    await env.wait_until(Project, None, lambda o: o is None)
    again = await env.client.create(Project(env.name))
    await env.wait_until(Project, None, lambda o: (o.condition("Ready") or {}).get("reason") == "NamespaceTerminating")
    await running.wait_until_idle()
    assert (await env.get(Project)).uid == again.uid
    assert not (await env.get(Project)).deleting
    for binding in (await env.client.list(fl.RoleBinding, env.name)).items:  # this server has no namespace controller
        await env.client.delete(fl.RoleBinding, binding.name, env.name)
    remaining = await env.merge(fl.Namespace, env.name, {"metadata": {"finalizers": None}})
    await env.client.replace(fl.Object({**remaining, "spec": {"finalizers": []}}), subresource="finalize")
    await env.wait_until(Project, None, lambda o: o.is_true("Ready"))
    assert (await env.get(Project)).uid == again.uid


async def test_existing_namespace_is_adopted_only_with_the_label(env):
    before = await env.client.create(fl.Namespace(env.name))
    await env.operator()
    await env.client.create(Project(env.name))
    await env.wait_until(Project, None, lambda o: o.is_true("Stalled"))
    assert (await env.get(fl.Namespace)).resource_version == before.resource_version
    assert PROJECT_LABEL in (await env.get(Project)).condition("Ready")["message"]
    await env.merge(fl.Namespace, env.name, {"metadata": {"labels": {PROJECT_LABEL: "true"}}})
    await env.wait_until(Project, None, lambda o: o.is_true("Ready") and not o.is_true("Stalled"))


async def test_extended_permissions_are_created_once(env):
    template = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more"}}
    await env.operator(extended=[{**template, "rules": gitops.EDITED}])
    await env.create()
    assert (await env.get(fl.Role, "more"))["rules"] == gitops.EDITED
    edited = await env.merge(fl.Role, "more", {"rules": []})
    await env.client.create(Warehouse("images", env.name, spec={}))
    await env.wait_until(Project, None, lambda o: o.status["stats"]["warehouses"]["count"] == 1)
    assert (await env.get(fl.Role, "more")).resource_version == edited.resource_version


async def test_identical_put_keeps_the_version_but_removes_foreign_metadata(env):
    """The report claims that a PUT without changes costs an etcd write. It does not, but removes others' metadata."""
    await env.client.create(fl.Namespace(env.name))
    binding = rbac.make_binding("b", env.name, "ClusterRole", "view", [("kargo-api", env.system)])
    first = await env.client.create(binding)
    assert (await env.client.replace(binding)).resource_version == first.resource_version
    await env.merge(fl.RoleBinding, "b", {"metadata": {"labels": {"team": "a"}, "finalizers": ["example.com/x"]}})
    after = await env.client.replace(binding)
    assert (after.labels, after.finalizers) == ({}, [])


async def test_legacy_never_updates_the_users_roles(env):
    """The report claims that all four functions create and then update. But two of them skip existing objects."""
    client = Client(counter := CountingTransport(env.api.transport()), World())
    async with legacy.running(client, World(), system=env.system):
        await env.create()
        await env.merge(fl.Role, "kargo-viewer", {"rules": gitops.EDITED})
        counter.counts.clear()
        await env.client.create(Warehouse("images", env.name, spec={}))
        await eventually(lambda: counter.counts["POST", 409] >= 13)  # one reconcile
    assert (await env.get(fl.Role, "kargo-viewer"))["rules"] == gitops.EDITED


async def test_unchanged_project_costs_no_write(env):
    counter = CountingTransport(env.api.transport())
    running = await env.operator(counter)
    await env.create()
    await running.wait_until_idle()
    counter.counts.clear()
    for number in range(20):
        woken = await env.merge(Project, env.name, {"metadata": {"labels": {"wake": str(number)}}})
        await running.wait_until_seen(woken)
    await running.wait_until_idle()
    assert {key: n for key, n in counter.counts.items() if key[0] != "GET"} == {}


async def test_new_controller_account_costs_one_request_per_project(env):
    names = [env.name, f"{env.name}-2", f"{env.name}-3"]
    running = await env.operator(counter := CountingTransport(env.api.transport()))
    for name in names:
        await env.client.create(Project(name))
    for name in names:
        await until(env.client, Project, name, None, lambda o: o.is_true("Ready"))
    await running.wait_until_idle()
    projects = [project for project in (await env.client.list(Project)).items if project.is_true("Ready")]
    assert len(projects) >= len(names)  # a shared server may have more
    costs = []
    for change in (
        env.controller(),
        env.client.patch(
            fl.ServiceAccount,
            "kargo-controller",
            env.system,
            {"metadata": {"annotations": {"a": "b"}}},
            type=PatchType.MERGE,
        ),
    ):
        counter.counts.clear()
        await running.wait_until_seen(await change)
        await running.wait_until_idle()
        costs.append({key: n for key, n in counter.counts.items() if key[0] != "GET"})
    assert costs == [{("PATCH", 201): len(projects)}, {}]


def rbac_manifests(system, *, without=()):
    """Yield the operator's ServiceAccount, role and binding from deploy/rbac.yaml, without the verbs in `without`."""
    path = Path(__file__).parents[2] / "projects" / "deploy" / "rbac.yaml"
    for obj in map(fl.Object, yaml.safe_load_all(path.read_text())):
        if obj.kind == "ServiceAccount":
            obj["metadata"]["namespace"] = system
        else:
            obj["metadata"]["name"] = f"projects-{system}"
        for rule in obj.get("rules", ()):
            rule["verbs"] = [verb for verb in rule["verbs"] if verb not in without] or ["get"]
        if "roleRef" in obj:
            obj["roleRef"]["name"] = f"projects-{system}"
            obj["subjects"][0]["namespace"] = system
        yield obj


async def operator_transport(env, *, without=()):
    """Return a transport that authenticates as the operator's ServiceAccount."""
    for obj in rbac_manifests(env.system, without=without):
        await env.client.create(obj)
    path = f"/api/v1/namespaces/{env.system}/serviceaccounts/projects/token"
    body = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}'
    answer = await env.api.transport().request(
        HttpRequest("POST", path, headers={"Content-Type": "application/json"}, body=body)
    )
    token = yaml.safe_load(answer.body)["status"]["token"]
    transport = HttpTransport(Cluster(env.api.url, env.api.ca_data), StaticCredentials.token(token))
    env.stack.push_async_callback(transport.close)
    return transport


@pytest.mark.rbac
async def test_operator_runs_with_its_own_service_account(env):
    await env.operator(await operator_transport(env))
    await env.controller()
    await env.create()
    assert await env.get(fl.RoleBinding, READ)
    await env.client.delete(Project, env.name)
    await env.wait_until(Project, None, lambda o: o is None)


@pytest.mark.rbac
@pytest.mark.parametrize(
    ("verb", "reason"), [("bind", "EnsuringSystemPermissionsFailed"), ("escalate", "EnsuringDefaultUserRolesFailed")]
)
async def test_condition_names_the_missing_verb_without_bind_or_escalate(env, verb, reason):
    await env.operator(await operator_transport(env, without=[verb]))
    await env.client.create(Project(env.name))
    project = await env.wait_until(Project, None, lambda o: (o.condition("Ready") or {}).get("reason") == reason)
    assert "attempting to grant RBAC permissions not currently held" in project.condition("Ready")["message"]
