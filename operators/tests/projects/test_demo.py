"""Tests of the demo: the old operator sends thousands of useless requests, the new operator sends none."""

import asyncio
import os
from collections import Counter

import pytest

import fairlead as fl
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.testing import virtual
from fairlead.testing.demo.demo_run import DemoRun
from fairlead.testing.demo.outcomes import play
from fairlead_operators.projects import demo
from fairlead_operators.projects.controller import op
from fairlead_operators.projects.kinds import COMPONENT, Project

RBAC = ("rolebindings", "roles", "serviceaccounts", "clusterroles", "clusterrolebindings")
PUBLISHED = [5, 3, 3, 1, 1]
PROJECTS = int(os.environ.get("FAIRLEAD_PROJECTS", "10"))
"""How many projects to create. The incident had 500, which take some minutes; pytest -s prints the figures."""


def play_demo(variant):
    async def main():
        world = virtual.world(1)
        run = DemoRun(Server(world, controllers=["gc", "namespace"]).transport, world)
        await demo.play(run, variant, PROJECTS)
        return run, await run.count_responses()

    return virtual.run(main())


@pytest.mark.timeout(1200)
def test_legacy_sends_useless_posts_in_the_published_ratio():
    run, responses = play_demo("old")
    refused = [responses["POST", resource, 409] for resource in RBAC]
    reconciles = refused[-1]
    assert reconciles >= PROJECTS * (demo.RECONCILES - 1)
    assert [n / reconciles for n in refused] == pytest.approx(
        PUBLISHED, rel=0.01
    )  # the last reconcile may be incomplete
    assert responses["PUT", "rolebindings", 200] == pytest.approx(2 * reconciles, rel=0.01)
    assert run.losses  # labels of the GitOps tool


async def test_legacy_sends_useless_posts_on_both_servers(api):
    outcome = await play(demo, "old", 3, api.transport, World(), namespace=f"{api.namespace}-demo")
    refused = [outcome.responses["POST", resource, 409] for resource in RBAC]
    assert refused[-1] >= 3 * (demo.RECONCILES - 1)
    assert [n / refused[-1] for n in refused] == pytest.approx(
        PUBLISHED, rel=0.1
    )  # the last reconciles may be incomplete


@pytest.mark.timeout(1800)
async def test_operator_creates_each_object_once_on_both_servers(api):
    outcome = await play(demo, "new", PROJECTS, api.transport, World(), namespace=f"{api.namespace}-demo")
    assert (outcome.losses, outcome.stuck) == ([], [])
    assert not [key for key in outcome.responses if key[2] == 409]
    counts = Counter(
        record.verb for record in outcome.records if record.actor == "operator" and "/projects/" not in record.path
    )
    failures = [
        record
        for record in outcome.records
        if record.actor == "operator" and record.verb == "reconcile" and record.outcome == "error"
    ]
    print(f"{PROJECTS} projects, {counts['reconcile']} reconciles, {len(failures)} failed, no 409; {dict(counts)}")
    assert (counts["POST"], counts["PATCH"], counts["PUT"], failures) == (11 * PROJECTS, 3 * PROJECTS, 0, [])


@pytest.mark.timeout(1200)
def test_operator_creates_each_object_once_without_409():
    run, responses = play_demo("new")
    assert (run.losses, run.stuck) == ([], [])
    assert not [key for key in responses if key[2] == 409]
    counts = Counter(
        record.verb for record in run.records if record.actor == "operator" and record.path.find("/projects/") < 0
    )
    assert (counts["POST"], counts["PATCH"], counts["PUT"]) == (11 * PROJECTS, 3 * PROJECTS, 0)


@pytest.mark.timeout(1200)
def test_new_controller_account_costs_one_request_per_project_in_virtual_time():
    async def main():
        world = virtual.world(1)
        run = DemoRun(Server(world).transport, world)
        await demo.install(run.admin, "kargo")
        async with op.running(run.transport("operator"), world) as running:
            for number in range(PROJECTS):
                await run.admin.create(Project(f"project-{number}"))
            await asyncio.sleep(60)
            account = fl.ServiceAccount("new", "kargo", labels={COMPONENT: "controller"})
            costs = []
            for change in (run.admin.create(account), annotate(run.admin)):
                run.records.clear()
                await change
                await asyncio.sleep(60)
                await running.wait_until_idle()
                costs.append(Counter((record.verb, record.outcome) for record in run.records))
            return costs

    first, second = virtual.run(main())
    assert first == Counter({("PATCH", "201"): PROJECTS})
    assert second == Counter()


async def annotate(client):
    account = await client.get(fl.ServiceAccount, "new", "kargo")
    await client.replace(fl.Object({**account, "metadata": {**account.metadata, "annotations": {"a": "b"}}}))
