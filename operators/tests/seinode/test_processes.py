"""Two processes that both saw `plan == nil`, at once: what each goes on with, and what is there in the end."""

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


async def race(api, kind, way):
    """What each of two processes goes on with, and the plan that is there after them."""
    client = Client(api.transport(), World())
    await crds.install(client, demo.__package__)
    cached = await client.create(kind("contended", api.namespace, spec=SPECS[kind]))
    server = {"url": api.url, "token": api.token, "ca": api.ca_data.decode()}
    processes = await asyncio.gather(start(), start())
    for process, name in zip(processes, ("one", "other"), strict=True):
        task = {**server, "cached": cached, "way": way, "plan": {"id": name, **PLAN}}
        process.stdin.write(json.dumps(task).encode() + b"\n")
    answers = [json.loads((await process.communicate())[0]) for process in processes]
    live = await client.get(kind, "contended", api.namespace)
    return answers, live.status["plan"]["id"]


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.kind)
async def test_two_processes_with_decide_use_the_same_plan(api, kind):
    answers, survivor = await race(api, kind, "decide")
    assert answers == [survivor, survivor]


async def test_second_put_with_a_version_conflicts(api):
    answers, survivor = await race(api, SeiNode, "put")
    assert sorted(answers, key=str) == sorted([None, survivor], key=str)


async def test_two_merge_patches_lose_one_plan_without_an_error(api):
    answers, survivor = await race(api, SeiNode, "merge from")
    assert sorted(answers) == ["one", "other"]
    assert survivor in answers
