"""Tests that nothing is deleted while a real upstream kube-apiserver cannot be read.

The tests kill and suspend the server's processes, replace its store and deny access by RBAC. When the server is
readable again, the earlier evidence counts again.
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
def real_server():
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
async def harness(real_server):
    """Create an orphan `web` and a copy `kept` with a live parent, and scan both one grace ago."""
    inner = HttpTransport(Cluster(real_server.url, real_server.ca_data), StaticCredentials.token(real_server.token))
    harness = fleets.FleetHarness(Server(None).transport(), "default", fleets.manual_world())
    harness.upstream_transports["project-a"] = RealTransport(inner)
    await harness.start()
    await harness.set_upstream("project-a", inner)
    with contextlib.suppress(fl.ApiError):
        await harness.create_gateway("alive")
    await harness.create_route()
    await harness.create_route("kept", parents=["alive"])
    await harness.collect()
    harness.clock.advance(GRACE)
    yield harness
    await inner.close()


@pytest.fixture
def transport(harness):
    return harness.upstream_transports["project-a"]


async def delete(harness, plan):
    deleter = OrphanDeleter(harness.fleet, harness.evidence, harness.world, harness.journal)
    return [deletion.outcome for deletion in await deleter.delete(plan.of(State.ORPHAN), plan.ambiguous)]


async def check_unknown(harness, plan_before):
    """Check that the orphan of the earlier plan stays and that a new plan has none. Return the reason."""
    assert [item.candidate.name for item in plan_before.of(State.ORPHAN)] == ["web"]
    assert await delete(harness, plan_before) == [DeletionOutcome.LEFT]
    now = await harness.plan()
    assert [item.verdict.state for item in now.items] == [State.REFUSED, State.REFUSED]
    assert await delete(harness, now) == []
    assert await harness.find("web")
    assert await harness.find("kept")
    assert not harness.journal
    return now.items[0].verdict.why


async def check_known_again(harness):
    assert [(deletion.item.candidate.name, deletion.outcome) for deletion in await harness.collect()] == [
        ("web", DeletionOutcome.DELETED)
    ]
    assert await harness.find("kept")


async def test_killed_upstream_is_not_treated_as_empty(harness, real_server):
    plan_before = await harness.plan()
    real_server.crash()
    try:
        reason = await check_unknown(harness, plan_before)
    finally:
        real_server.recover()
    assert "its identity cannot be read" in reason
    await check_known_again(harness)


async def test_upstream_killed_between_two_pages_is_not_treated_as_empty(harness, transport, real_server, monkeypatch):
    await harness.create_gateway("another")
    monkeypatch.setattr(looks, "PAGE_SIZE", 1)
    paths = []

    def kill_server(method, path, query):
        if "gateways" in path and "continue" in query and not paths:
            paths.append(path)
            real_server.crash()

    transport.fault = kill_server
    try:
        plan = await harness.plan()
    finally:
        real_server.recover()
    assert paths
    assert [item.verdict.state for item in plan.items] == [State.REFUSED, State.REFUSED]
    await check_known_again(harness)
    await harness.delete_gateway("another")


async def test_upstream_that_times_out_is_not_treated_as_empty(harness, transport, real_server):
    plan_before = await harness.plan()
    transport.timeout = 0.5
    for pid in real_server.pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        await check_unknown(harness, plan_before)
    finally:
        for pid in real_server.pids:
            os.kill(pid, signal.SIGCONT)
    transport.timeout = None
    await check_known_again(harness)


@pytest.mark.parametrize("allowed", [[], ["namespaces"]])
async def test_upstream_that_forbids_access_is_not_treated_as_empty(harness, transport, allowed):
    """Tests RBAC that forbids everything except discovery, and RBAC that forbids only Gateways."""
    name = f"nobody-{len(allowed)}"
    rules = [{"apiGroups": [""], "resources": allowed, "verbs": ["get"]}] if allowed else []
    subject = {"kind": "User", "name": name, "apiGroup": ClusterRole.group}
    role = {"kind": "ClusterRole", "name": name, "apiGroup": ClusterRole.group}
    await harness.upstream_clients["project-a"].create(fl.Object({**ClusterRole(name), "rules": rules}))
    await harness.upstream_clients["project-a"].create(
        fl.Object({**ClusterRoleBinding(name), "roleRef": role, "subjects": [subject]})
    )
    plan_before = await harness.plan()
    transport.user = name
    reason = await check_unknown(harness, plan_before)
    assert "is forbidden" in reason
    assert ("gateways cannot be read" in reason) is bool(allowed)
    transport.user = ""
    await check_known_again(harness)


@contextlib.contextmanager
def empty_store(real_server):
    """Run the server at the same address with an empty store, like a restart that lost its disk."""
    backup = real_server.data.with_name("backup")
    real_server.crash()
    real_server.data.rename(backup)
    try:
        real_server.recover()
        yield
    finally:
        real_server.crash()
        shutil.rmtree(real_server.data)
        backup.rename(real_server.data)
        real_server.recover()


async def test_upstream_with_an_empty_store_after_a_restart_is_another_cluster(harness, real_server):
    plan_before = await harness.plan()
    with empty_store(real_server):
        assert "another cluster than before" in await check_unknown(harness, plan_before)
        await fleets.install(
            harness.upstream_clients["project-a"]
        )  # The result is the same when the server has the CRD and no Gateways.
        assert (await harness.upstream_clients["project-a"].list(Gateway)).items == []
        harness.clock.advance(GRACE)
        assert "another cluster than before" in await check_unknown(harness, plan_before)
    await check_known_again(harness)


async def test_real_upstream_replaced_during_a_scan_is_unknown(harness, transport):
    real_transport, other_transport = transport.inner, Server(None).transport()
    await fleets.install(Client(other_transport, harness.world))

    def replace_server(method, path, query):
        if "gateways" in path:
            transport.inner = other_transport

    transport.fault = replace_server
    plan = await harness.plan()
    assert [item.verdict.state for item in plan.items] == [State.REFUSED, State.REFUSED]
    assert "another cluster than before" in plan.items[0].verdict.why
    transport.clear_fault()
    transport.inner = real_transport
    await check_known_again(harness)
