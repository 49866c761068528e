"""A real upstream kube-apiserver that cannot be read is unknown, and nothing is deleted.

The tests kill and suspend its processes, replace its store and deny access by RBAC. When it is back, the earlier
evidence counts again.
"""

import contextlib
import os
import shutil
import signal
from dataclasses import replace

import fleets
import pytest
from fleets import Gateway

import fairlead as fl
from fairlead.client.access import Cluster
from fairlead.client.client import Client
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.server.app import Server
from fairlead.testing.real import RealServer
from fairlead.tools.orphans import looks
from fairlead.tools.orphans.deletion import DeletionOutcome, OrphanDeleter
from fairlead.tools.orphans.verdicts import State

pytestmark = pytest.mark.real

GRACE = 300.0
ClusterRole = fl.kind("rbac.authorization.k8s.io/v1", "ClusterRole")
ClusterRoleBinding = fl.kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")


@pytest.fixture(scope="module")
def machine():
    """Start a server for these tests only."""
    with RealServer() as server:
        yield server


class RealTransport(fleets.FaultyTransport):
    """A transport to a real server that can impersonate `user` and limit requests to `timeout` seconds."""

    user, timeout = "", None

    async def request(self, request):
        headers = {**(request.headers or {}), **({"Impersonate-User": self.user} if self.user else {})}
        return await super().request(replace(request, headers=headers, timeout=self.timeout or request.timeout))


@pytest.fixture
async def bed(machine):
    """Create an orphan `web` and a copy `kept` with a live parent, and scan both one grace ago."""
    inner = HttpTransport(Cluster(machine.url, machine.ca_data), StaticCredentials.token(machine.token))
    bed = fleets.Bed(Server(None).transport(), "default", fleets.manual_world())
    bed.upstream_transports["project-a"] = RealTransport(inner)
    await bed.start()
    await bed.set_upstream("project-a", inner)
    with contextlib.suppress(fl.ApiError):
        await bed.create_gateway("alive")
    await bed.create_route()
    await bed.create_route("kept", parents=["alive"])
    await bed.collect()
    bed.clock.forward(GRACE)
    yield bed
    await inner.close()


@pytest.fixture
def transport(bed):
    return bed.upstream_transports["project-a"]


async def delete(bed, plan):
    deleter = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    return [done.outcome for done in await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)]


async def check_unknown(bed, before):
    """Check that the orphan of the earlier plan stays and that a new plan has none. Return the reason."""
    assert [item.candidate.name for item in before.of(State.ORPHAN)] == ["web"]
    assert await delete(bed, before) == [DeletionOutcome.LEFT]
    now = await bed.plan()
    assert [item.verdict.state for item in now.items] == [State.REFUSED, State.REFUSED]
    assert await delete(bed, now) == []
    assert await bed.find("web")
    assert await bed.find("kept")
    assert not bed.journal
    return now.items[0].verdict.why


async def check_known_again(bed):
    assert [(one.item.candidate.name, one.outcome) for one in await bed.collect()] == [("web", DeletionOutcome.DELETED)]
    assert await bed.find("kept")


async def test_killed_upstream_is_not_treated_as_empty(bed, machine):
    before = await bed.plan()
    machine.crash()
    try:
        why = await check_unknown(bed, before)
    finally:
        machine.recover()
    assert "its identity cannot be read" in why
    await check_known_again(bed)


async def test_upstream_killed_between_two_pages_is_not_treated_as_empty(bed, transport, machine, monkeypatch):
    await bed.create_gateway("another")
    monkeypatch.setattr(looks, "PAGE_SIZE", 1)
    paths = []

    def kill(method, path, query):
        if "gateways" in path and "continue" in query and not paths:
            paths.append(path)
            machine.crash()

    transport.fault = kill
    try:
        plan = await bed.plan()
    finally:
        machine.recover()
    assert paths
    assert [item.verdict.state for item in plan.items] == [State.REFUSED, State.REFUSED]
    await check_known_again(bed)
    await bed.delete_gateway("another")


async def test_upstream_that_times_out_is_not_treated_as_empty(bed, transport, machine):
    before = await bed.plan()
    transport.timeout = 0.5
    for pid in machine.pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        await check_unknown(bed, before)
    finally:
        for pid in machine.pids:
            os.kill(pid, signal.SIGCONT)
    transport.timeout = None
    await check_known_again(bed)


@pytest.mark.parametrize("allowed", [[], ["namespaces"]])
async def test_upstream_that_forbids_access_is_not_treated_as_empty(bed, transport, allowed):
    """RBAC forbids everything except discovery, and then only Gateways."""
    name = f"nobody-{len(allowed)}"
    rules = [{"apiGroups": [""], "resources": allowed, "verbs": ["get"]}] if allowed else []
    subject = {"kind": "User", "name": name, "apiGroup": ClusterRole.group}
    role = {"kind": "ClusterRole", "name": name, "apiGroup": ClusterRole.group}
    await bed.up["project-a"].create(fl.Object({**ClusterRole(name), "rules": rules}))
    await bed.up["project-a"].create(fl.Object({**ClusterRoleBinding(name), "roleRef": role, "subjects": [subject]}))
    before = await bed.plan()
    transport.user = name
    why = await check_unknown(bed, before)
    assert "is forbidden" in why
    assert ("gateways cannot be read" in why) is bool(allowed)
    transport.user = ""
    await check_known_again(bed)


@contextlib.contextmanager
def empty_store(machine):
    """Run the server at the same address with an empty store, like a restart that lost its disk."""
    backup = machine.data.with_name("backup")
    machine.crash()
    machine.data.rename(backup)
    try:
        machine.recover()
        yield
    finally:
        machine.crash()
        shutil.rmtree(machine.data)
        backup.rename(machine.data)
        machine.recover()


async def test_upstream_with_an_empty_store_after_a_restart_is_another_cluster(bed, machine):
    before = await bed.plan()
    with empty_store(machine):
        assert "another cluster than before" in await check_unknown(bed, before)
        await fleets.install(bed.up["project-a"])  # The result is the same when the server has the CRD and no Gateways.
        assert (await bed.up["project-a"].list(Gateway)).items == []
        bed.clock.forward(GRACE)
        assert "another cluster than before" in await check_unknown(bed, before)
    await check_known_again(bed)


async def test_real_upstream_replaced_during_a_scan_is_unknown(bed, transport):
    real, other = transport.inner, Server(None).transport()
    await fleets.install(Client(other, bed.world))

    def replace(method, path, query):
        if "gateways" in path:
            transport.inner = other

    transport.fault = replace
    plan = await bed.plan()
    assert [item.verdict.state for item in plan.items] == [State.REFUSED, State.REFUSED]
    assert "another cluster than before" in plan.items[0].verdict.why
    transport.clear_fault()
    transport.inner = real
    await check_known_again(bed)
