"""Tests of two processes that write a plan at the same time, based on the same cached copy without a plan."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead_operators import crds
from fairlead_operators.seinode import demo
from fairlead_operators.seinode.kinds import SeiNode, SeiNodeDeployment

NODE = demo.make_node("x")["spec"]
SPECS = {SeiNode: NODE, SeiNodeDeployment: {"replicas": 1, "template": {"spec": NODE}}}
PLAN = {"phase": "Active", "executor": "x", "generation": 1, "movedAt": "2026-01-01T00:00:00Z", "tasks": []}
PLAN_WRITER = Path(__file__).with_name("plan_writer.py")


async def start():
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, PLAN_WRITER, stdin=pipe, stdout=pipe)
    assert await process.stdout.readline() == b"ready\n"
    return process


async def race(api, kind, method):
    """Let two processes write a plan. Return the plan ids that they would execute, and the stored plan id."""
    client = Client(api.transport(), World())
    await crds.install(client, demo.__package__)
    cached = await client.create(kind("contended", api.namespace, spec=SPECS[kind]))
    server = {"url": api.url, "token": api.token, "ca": api.ca_data.decode()}
    processes = await asyncio.gather(start(), start())
    for process, name in zip(processes, ("first", "second"), strict=True):
        arguments = {**server, "cached": cached, "method": method, "plan": {"id": name, **PLAN}}
        process.stdin.write(json.dumps(arguments).encode() + b"\n")
    plan_ids = [json.loads((await process.communicate())[0]) for process in processes]
    live = await client.get(kind, "contended", api.namespace)
    return plan_ids, live.status["plan"]["id"]


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.kind)
async def test_two_processes_with_decide_use_the_same_plan(api, kind):
    plan_ids, survivor = await race(api, kind, "decide")
    assert plan_ids == [survivor, survivor]


async def test_second_put_with_a_version_conflicts(api):
    plan_ids, survivor = await race(api, SeiNode, "put")
    assert sorted(plan_ids, key=str) == sorted([None, survivor], key=str)


async def test_two_merge_patches_lose_one_plan_without_an_error(api):
    plan_ids, survivor = await race(api, SeiNode, "merge from")
    assert sorted(plan_ids) == ["first", "second"]
    assert survivor in plan_ids
