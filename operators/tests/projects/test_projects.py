"""The operator's cases, each on both servers."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml
from waiting import eventually, until

import fairlead as fl
from fairlead.api.errors import NotFound
from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client, PatchType
from fairlead.client.credentials import Static
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


class Bed:
    """A system namespace, a project's name, a client, and ways to wait."""

    def __init__(self, api, stack):
        self.api, self.stack = api, stack
        self.system, self.name = f"{api.namespace}-kargo", f"{api.namespace}-project"
        self.client = Client(api.transport(), World(), user_agent="test")

    async def operator(self, transport=None, **resources):
        options = {"resources": {"system": self.system, **resources}}
        return await self.stack.enter_async_context(op.running(transport or self.api.transport(), World(), **options))

    async def create(self, **annotations):
        project = await self.client.create(Project(self.name, annotations=annotations))
        await self.until(Project, None, lambda o: o.is_true("Ready"))
        return project

    async def get(self, kind, name=None, namespace=None):
        try:
            return await self.client.get(kind, name or self.name, self.name if kind.namespaced else None)
        except NotFound:
            return None

    async def until(self, kind, name, holds):
        return await until(self.client, kind, name or self.name, self.name if kind.namespaced else None, holds)

    async def controller(self, name="kargo-controller"):
        return await self.client.create(fl.ServiceAccount(name, self.system, labels={COMPONENT: "controller"}))

    async def merge(self, kind, name, patch, subresource=None):
        namespace = self.name if kind.namespaced else None
        return await self.client.patch(kind, name, namespace, patch, type=PatchType.MERGE, subresource=subresource)


@pytest.fixture
async def world(api):
    async with AsyncExitStack() as stack:
        it = Bed(api, stack)
        await demo.install(it.client, it.system)
        yield it


def there(obj):
    return obj is not None


def gone(obj):
    return obj is None or obj.deleting


async def test_a_project_gets_its_namespace_and_thirteen_objects(world):
    await world.operator()
    await world.create()
    namespace = await world.get(fl.Namespace)
    assert (namespace.labels[PROJECT_LABEL], FINALIZER in namespace.finalizers) == ("true", True)
    found = {kind.kind: (await world.client.list(kind, world.name)).items for kind in (fl.Role, fl.RoleBinding)}
    assert sorted(role.name for role in found["Role"]) == ["kargo-admin", "kargo-promoter", "kargo-viewer"]
    assert sorted(each.name for each in found["RoleBinding"]) == [
        "kargo-admin",
        "kargo-project-admin",
        "kargo-project-secrets-reader",
        "kargo-promoter",
        "kargo-viewer",
    ]
    for name in rbac.DEFAULT_ROLES:
        assert await world.get(fl.ServiceAccount, name)
    for kind in (fl.ClusterRole, fl.ClusterRoleBinding):
        assert await world.get(kind, f"kargo-project-admin-{world.name}")


async def test_what_users_edit_in_their_roles_stays(world):
    await world.operator()
    await world.create()
    edited = await world.merge(fl.Role, "kargo-viewer", {"rules": gitops.EDITED})
    await world.merge(Project, world.name, {"metadata": {"labels": {"wake": "up"}}})
    await world.client.create(Warehouse("images", world.name, spec={}))
    await world.until(Project, None, lambda o: o.status["stats"]["warehouses"]["count"] == 1)
    assert (await world.get(fl.Role, "kargo-viewer")).resource_version == edited.resource_version


async def test_a_system_binding_that_was_edited_is_put_right_and_foreign_parts_stay(world):
    await world.operator()
    await world.create()
    patch = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}, "finalizers": ["example.com/mine"]}}
    await world.merge(fl.RoleBinding, "kargo-project-admin", {**patch, "subjects": []})
    after = await world.until(fl.RoleBinding, "kargo-project-admin", lambda o: len(o.get("subjects") or ()) == 2)
    assert (after.labels["team"], after.annotations["note"]) == ("a", "b")
    assert after.finalizers == ["example.com/mine"]
    await world.merge(fl.RoleBinding, "kargo-project-admin", {"metadata": {"finalizers": None}})


async def test_a_changed_role_ref_makes_the_binding_anew(world):
    await world.client.create(fl.Namespace(world.name, labels={PROJECT_LABEL: "true"}))
    wrong = rbac.binding("kargo-project-admin", world.name, "ClusterRole", "view", [("kargo-api", world.system)])
    before = await world.client.create(wrong)
    await world.operator()
    await world.create()
    after = await world.get(fl.RoleBinding, "kargo-project-admin")
    assert (after["roleRef"]["name"], after.uid != before.uid) == ("kargo-project-admin", True)


async def test_a_controllers_account_is_bound_in_every_project_and_unbound_when_it_goes(world):
    await world.operator()
    await world.create()
    await world.controller()
    bound = await world.until(fl.RoleBinding, READ, there)
    assert [subject["namespace"] for subject in bound["subjects"]] == [world.system]
    await world.client.delete(fl.ServiceAccount, "kargo-controller", world.system)
    await world.until(fl.RoleBinding, READ, gone)


async def test_health_of_warehouses_and_stages_is_counted(world):
    await world.operator()
    await world.create()
    for kind in (Warehouse, Stage):
        await world.client.create(kind("one", world.name, spec={}))
        await world.merge(kind, "one", {"status": {"health": {"status": "Healthy"}}}, "status")
    healthy = {"count": 1, "healthy": 1}
    want = {"warehouses": healthy, "stages": healthy}
    await world.until(Project, None, lambda o: o.status["stats"] == want and o.is_true("Healthy"))
    await world.merge(Stage, "one", {"status": {"health": {"status": "Unhealthy"}}}, "status")
    await world.until(Project, None, lambda o: not o.is_true("Healthy"))


@pytest.mark.parametrize("keep", [False, True], ids=["by default", "keep-namespace"])
async def test_deletion_removes_the_cluster_roles_and_the_namespace_unless_kept(world, keep):
    await world.operator()
    await world.create(**({KEEP_NAMESPACE: "true"} if keep else {}))
    await world.client.delete(Project, world.name)
    await world.until(Project, None, lambda o: o is None)
    for kind in (fl.ClusterRole, fl.ClusterRoleBinding):
        assert await world.get(kind, f"kargo-project-admin-{world.name}") is None
    namespace = await world.get(fl.Namespace)
    assert gone(namespace) is not keep
    assert namespace is None or FINALIZER not in namespace.finalizers


async def test_a_project_goes_with_its_namespace(world):
    await world.operator()
    await world.create()
    await world.client.delete(fl.Namespace, world.name)
    await world.until(Project, None, lambda o: o is None)
    namespace = await world.get(fl.Namespace)
    assert namespace is None or FINALIZER not in namespace.finalizers


async def test_a_project_made_anew_waits_for_the_namespace_of_its_predecessor_to_go(world):
    running = await world.operator()
    await world.create()
    held = {"metadata": {"finalizers": [FINALIZER, "example.com/mine"]}}
    await world.merge(fl.Namespace, world.name, held)
    await world.client.delete(Project, world.name)
    await world.until(Project, None, lambda o: o is None)
    again = await world.client.create(Project(world.name))
    await world.until(Project, None, lambda o: (o.condition("Ready") or {}).get("reason") == "NamespaceTerminating")
    await running.quiet()
    assert (await world.get(Project)).uid == again.uid
    assert not (await world.get(Project)).deleting
    for binding in (await world.client.list(fl.RoleBinding, world.name)).items:  # no controller empties it here
        await world.client.delete(fl.RoleBinding, binding.name, world.name)
    left = await world.merge(fl.Namespace, world.name, {"metadata": {"finalizers": None}})
    await world.client.replace(fl.Object({**left, "spec": {"finalizers": []}}), subresource="finalize")
    await world.until(Project, None, lambda o: o.is_true("Ready"))
    assert (await world.get(Project)).uid == again.uid


async def test_a_namespace_that_was_there_before_is_left_alone_until_it_is_labelled(world):
    before = await world.client.create(fl.Namespace(world.name))
    await world.operator()
    await world.client.create(Project(world.name))
    await world.until(Project, None, lambda o: o.is_true("Stalled"))
    assert (await world.get(fl.Namespace)).resource_version == before.resource_version
    assert PROJECT_LABEL in (await world.get(Project)).condition("Ready")["message"]
    await world.merge(fl.Namespace, world.name, {"metadata": {"labels": {PROJECT_LABEL: "true"}}})
    await world.until(Project, None, lambda o: o.is_true("Ready") and not o.is_true("Stalled"))


async def test_extended_permissions_are_made_once(world):
    template = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more"}}
    await world.operator(extended=[{**template, "rules": gitops.EDITED}])
    await world.create()
    assert (await world.get(fl.Role, "more"))["rules"] == gitops.EDITED
    edited = await world.merge(fl.Role, "more", {"rules": []})
    await world.client.create(Warehouse("images", world.name, spec={}))
    await world.until(Project, None, lambda o: o.status["stats"]["warehouses"]["count"] == 1)
    assert (await world.get(fl.Role, "more")).resource_version == edited.resource_version


async def test_an_identical_put_moves_no_resource_version_and_wipes_what_others_wrote(world):
    """A wrong belief: an update with no change costs an etcd write. Its harm is another one."""
    await world.client.create(fl.Namespace(world.name))
    binding = rbac.binding("b", world.name, "ClusterRole", "view", [("kargo-api", world.system)])
    first = await world.client.create(binding)
    assert (await world.client.replace(binding)).resource_version == first.resource_version
    await world.merge(fl.RoleBinding, "b", {"metadata": {"labels": {"team": "a"}, "finalizers": ["example.com/x"]}})
    after = await world.client.replace(binding)
    assert (after.labels, after.finalizers) == ({}, [])


async def test_two_of_the_four_accused_functions_never_update(world):
    """A wrong belief: that all of them create and then update. The users' roles are skipped, on purpose."""
    client = Client(counted := CountingTransport(world.api.transport()), World())
    async with legacy.running(client, World(), system=world.system):
        await world.create()
        await world.merge(fl.Role, "kargo-viewer", {"rules": gitops.EDITED})
        counted.counts.clear()
        await world.client.create(Warehouse("images", world.name, spec={}))
        await eventually(lambda: counted.counts["POST", 409] >= 13)  # a pass of each function over what is there
    assert (await world.get(fl.Role, "kargo-viewer"))["rules"] == gitops.EDITED


async def test_a_project_at_rest_costs_no_request(world):
    counted = CountingTransport(world.api.transport())
    running = await world.operator(counted)
    await world.create()
    await running.quiet()
    counted.counts.clear()
    for number in range(20):
        woken = await world.merge(Project, world.name, {"metadata": {"labels": {"wake": str(number)}}})
        await running.seen(woken)
    await running.quiet()
    assert {key: n for key, n in counted.counts.items() if key[0] != "GET"} == {}


async def test_a_new_account_costs_one_request_a_project_and_an_unimportant_change_none(world):
    names = [world.name, f"{world.name}-2", f"{world.name}-3"]
    running = await world.operator(counted := CountingTransport(world.api.transport()))
    for name in names:
        await world.client.create(Project(name))
    for name in names:
        await until(world.client, Project, name, None, lambda o: o.is_true("Ready"))
    await running.quiet()
    projects = [each for each in (await world.client.list(Project)).items if each.is_true("Ready")]
    assert len(projects) >= len(names)  # on a server that others use, theirs too
    costs = []
    for change in (
        world.controller(),
        world.client.patch(
            fl.ServiceAccount,
            "kargo-controller",
            world.system,
            {"metadata": {"annotations": {"a": "b"}}},
            type=PatchType.MERGE,
        ),
    ):
        counted.counts.clear()
        await running.seen(await change)
        await running.quiet()
        costs.append({key: n for key, n in counted.counts.items() if key[0] != "GET"})
    assert costs == [{("PATCH", 201): len(projects)}, {}]


def granted(system, *, but=()):
    """The operator's own account, role and binding, in this system namespace, without some verbs."""
    path = Path(__file__).parents[2] / "projects" / "deploy" / "rbac.yaml"
    for obj in map(fl.Object, yaml.safe_load_all(path.read_text())):
        if obj.kind == "ServiceAccount":
            obj["metadata"]["namespace"] = system
        else:
            obj["metadata"]["name"] = f"projects-{system}"
        for rule in obj.get("rules", ()):
            rule["verbs"] = [verb for verb in rule["verbs"] if verb not in but] or ["get"]
        if "roleRef" in obj:
            obj["roleRef"]["name"] = f"projects-{system}"
            obj["subjects"][0]["namespace"] = system
        yield obj


async def as_itself(world, *, but=()):
    """A transport that is the operator's own ServiceAccount."""
    for obj in granted(world.system, but=but):
        await world.client.create(obj)
    path = f"/api/v1/namespaces/{world.system}/serviceaccounts/projects/token"
    body = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}'
    answer = await world.api.transport().request(
        HttpRequest("POST", path, headers={"Content-Type": "application/json"}, body=body)
    )
    token = yaml.safe_load(answer.body)["status"]["token"]
    transport = HttpTransport(Cluster(world.api.url, world.api.ca_data), Static.token(token))
    world.stack.push_async_callback(transport.close)
    return transport


@pytest.mark.rbac
async def test_it_runs_under_its_own_account(world):
    await world.operator(await as_itself(world))
    await world.controller()
    await world.create()
    assert await world.get(fl.RoleBinding, READ)
    await world.client.delete(Project, world.name)
    await world.until(Project, None, lambda o: o is None)


@pytest.mark.rbac
@pytest.mark.parametrize(
    ("verb", "reason"), [("bind", "EnsuringSystemPermissionsFailed"), ("escalate", "EnsuringDefaultUserRolesFailed")]
)
async def test_without_bind_or_escalate_the_server_refuses_and_the_condition_says_what_is_missing(world, verb, reason):
    await world.operator(await as_itself(world, but=[verb]))
    await world.client.create(Project(world.name))
    project = await world.until(Project, None, lambda o: (o.condition("Ready") or {}).get("reason") == reason)
    assert "attempting to grant RBAC permissions not currently held" in project.condition("Ready")["message"]
