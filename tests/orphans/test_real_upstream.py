"""What is unknown is never absent, with a real kube-apiserver upstream: its processes killed and stopped, its store
replaced, its RBAC against us. Nothing is deleted; when it is back, what was known before counts again."""

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
    """A server of these tests alone."""
    with RealServer() as server:
        yield server


class Way(fleets.Door):
    """The way to a real server, as `user` if one is named, and with little patience once told so."""

    user, patience = "", None

    async def request(self, request):
        headers = {**(request.headers or {}), **({"Impersonate-User": self.user} if self.user else {})}
        return await super().request(replace(request, headers=headers, timeout=self.patience or request.timeout))


@pytest.fixture
async def bed(machine):
    """An orphan, `web`, and a copy with a live parent, `kept`, both seen at a look that is a grace ago."""
    inner = HttpTransport(Cluster(machine.url, machine.ca_data), StaticCredentials.token(machine.token))
    bed = fleets.Bed(Server(None).transport(), "default", fleets.hand_world())
    bed.doors["project-a"] = Way(inner)
    await bed.start()
    await bed.upstream("project-a", inner)
    with contextlib.suppress(fl.ApiError):
        await bed.gateway("alive")
    await bed.route()
    await bed.route("kept", parents=["alive"])
    await bed.collect()
    bed.clock.forward(GRACE)
    yield bed
    await inner.close()


@pytest.fixture
def door(bed):
    return bed.doors["project-a"]


async def delete(bed, plan):
    actor = OrphanDeleter(bed.fleet, bed.evidence, bed.world, bed.journal)
    return [done.outcome for done in await actor.delete(plan.of(State.ORPHAN), plan.ambiguous)]


async def unknown(bed, before):
    """What was an orphan in the plan before is left, none is one in a plan of now; answers why."""
    assert [item.candidate.name for item in before.of(State.ORPHAN)] == ["web"]
    assert await delete(bed, before) == [DeletionOutcome.LEFT]
    now = await bed.plan()
    assert [item.verdict.state for item in now.items] == [State.REFUSED, State.REFUSED]
    assert await delete(bed, now) == []
    assert await bed.there("web")
    assert await bed.there("kept")
    assert not bed.journal
    return now.items[0].verdict.why


async def known_again(bed):
    assert [(one.item.candidate.name, one.outcome) for one in await bed.collect()] == [("web", DeletionOutcome.DELETED)]
    assert await bed.there("kept")


async def test_killed_upstream_is_not_treated_as_empty(bed, machine):
    before = await bed.plan()
    machine.crash()
    try:
        why = await unknown(bed, before)
    finally:
        machine.recover()
    assert "its identity cannot be read" in why
    await known_again(bed)


async def test_upstream_killed_between_two_pages_is_not_treated_as_empty(bed, door, machine, monkeypatch):
    await bed.gateway("another")
    monkeypatch.setattr(looks, "PAGE_SIZE", 1)
    asked = []

    def kill(method, path, query):
        if "gateways" in path and "continue" in query and not asked:
            asked.append(path)
            machine.crash()

    door.fault = kill
    try:
        plan = await bed.plan()
    finally:
        machine.recover()
    assert asked
    assert [item.verdict.state for item in plan.items] == [State.REFUSED, State.REFUSED]
    await known_again(bed)
    await bed.no_gateway("another")


async def test_upstream_that_times_out_is_not_treated_as_empty(bed, door, machine):
    before = await bed.plan()
    door.patience = 0.5
    for pid in machine.pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        await unknown(bed, before)
    finally:
        for pid in machine.pids:
            os.kill(pid, signal.SIGCONT)
    door.patience = None
    await known_again(bed)


@pytest.mark.parametrize("may", [[], ["namespaces"]])
async def test_upstream_that_forbids_access_is_not_treated_as_empty(bed, door, may):
    """Its RBAC does: first everything but discovery, then the Gateways alone."""
    name = f"nobody-{len(may)}"
    rules = [{"apiGroups": [""], "resources": may, "verbs": ["get"]}] if may else []
    subject = {"kind": "User", "name": name, "apiGroup": ClusterRole.group}
    role = {"kind": "ClusterRole", "name": name, "apiGroup": ClusterRole.group}
    await bed.up["project-a"].create(fl.Object({**ClusterRole(name), "rules": rules}))
    await bed.up["project-a"].create(fl.Object({**ClusterRoleBinding(name), "roleRef": role, "subjects": [subject]}))
    before = await bed.plan()
    door.user = name
    why = await unknown(bed, before)
    assert "is forbidden" in why
    assert ("gateways cannot be read" in why) is bool(may)
    door.user = ""
    await known_again(bed)


@contextlib.contextmanager
def another_store(machine):
    """The server of the same address on a store that is empty, as after a restart that lost its disk."""
    kept = machine.data.with_name("kept")
    machine.crash()
    machine.data.rename(kept)
    try:
        machine.recover()
        yield
    finally:
        machine.crash()
        shutil.rmtree(machine.data)
        kept.rename(machine.data)
        machine.recover()


async def test_upstream_with_an_empty_store_after_a_restart_is_another_cluster(bed, machine):
    before = await bed.plan()
    with another_store(machine):
        assert "another cluster than before" in await unknown(bed, before)
        await fleets.install(bed.up["project-a"])  # nor when it serves Gateways, and has none
        assert (await bed.up["project-a"].list(Gateway)).items == []
        bed.clock.forward(GRACE)
        assert "another cluster than before" in await unknown(bed, before)
    await known_again(bed)


async def test_real_upstream_replaced_during_a_scan_is_unknown(bed, door):
    real, other = door.inner, Server(None).transport()
    await fleets.install(Client(other, bed.world))

    def replace(method, path, query):
        if "gateways" in path:
            door.inner = other

    door.fault = replace
    plan = await bed.plan()
    assert [item.verdict.state for item in plan.items] == [State.REFUSED, State.REFUSED]
    assert "another cluster than before" in plan.items[0].verdict.why
    door.open()
    door.inner = real
    await known_again(bed)
