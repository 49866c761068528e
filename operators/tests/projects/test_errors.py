"""Tests of invalid projects: the condition names the fix, and the operator does not retry in a loop."""

import asyncio

import pytest

from fairlead.api.errors import Invalid, UserError
from fairlead.client.client import Client
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.network import CountingTransport
from fairlead_operators.projects import demo
from fairlead_operators.projects.controller import op
from fairlead_operators.projects.kinds import Project

HOUR = 3600.0


def run_for_two_hours(name, **resources):
    """Run a project for two virtual hours. Return its condition Ready and the number of rejected writes."""

    async def main():
        world = virtual.world(1)
        server = Server(world)
        client, counting_transport = Client(server.transport(), world), CountingTransport(server.transport())
        await demo.install(client, "kargo")
        async with op.running(counting_transport, world, resources={"system": "kargo", **resources}):
            await client.create(Project(name))
            await asyncio.sleep(HOUR)
            first = +counting_transport.counts
            await asyncio.sleep(HOUR)
            assert {
                key for key in counting_transport.counts - first if key[0] != "GET"
            } == set()  # no writes in the second hour
            refused = sum(n for (_, code), n in counting_transport.counts.items() if code == 422)
            condition = (await client.get(Project, name)).condition("Ready")
            await client.delete(Project, name)
            await asyncio.sleep(HOUR)
            assert not (await client.list(Project)).items
            return condition, refused

    return virtual.run(main())


def test_schema_rejects_a_project_name_of_64_characters():
    with pytest.raises(Invalid, match="at most 63 characters"):
        run_for_two_hours("x" * 64)


def test_project_name_with_dots_is_reported_and_not_retried():
    condition, refused = run_for_two_hours("with.dots")
    assert (condition["status"], condition["reason"]) == ("False", "EnsuringNamespaceFailed")
    assert "create the project under another name" in condition["message"]
    assert refused == 2  # the write of the condition triggers one more reconcile


def test_invalid_extended_permissions_are_reported_and_not_retried():
    wrong = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more"}}
    condition, refused = run_for_two_hours("project", extended=[{**wrong, "rules": [{"verbs": []}]}])
    assert (condition["status"], condition["reason"]) == ("False", "EnsuringExtendedPermissionsFailed")
    assert "PROJECTS_EXTENDED_PERMISSIONS" in condition["message"]
    assert refused == 2  # the write of the condition triggers one more reconcile


@pytest.mark.parametrize(
    ("file_content", "message"),
    [
        (None, "cannot be read"),
        ("a: [", "correct it"),
        ("just text", "needs apiVersion and kind"),
        ("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}}", "takes Roles"),
        ("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}", "each with a name"),
    ],
)
def test_startup_rejects_an_invalid_extended_permissions_file(tmp_path, monkeypatch, file_content, message):
    path = tmp_path / "extended.yaml"
    if file_content is not None:
        path.write_text(file_content)
    monkeypatch.setenv("PROJECTS_EXTENDED_PERMISSIONS", str(path))

    async def main():
        world = virtual.world(1)
        async with op.running(Server(world).transport(), world):
            pass

    with pytest.raises(UserError, match=message):
        virtual.run(main())
