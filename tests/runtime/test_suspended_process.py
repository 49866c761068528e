"""Tests of a leader process that is suspended and resumes after its lease has expired."""

import asyncio
import contextlib
import os
import signal
import sys
import textwrap

import msgspec
import pytest

import fairlead as fl
from fairlead.api.files import write_private
from fairlead.cli.serve import kubeconfig_text
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing

Thing = fl.kind("frozen.example.com/v1", "Thing")

OPERATOR = """
    import os
    import fairlead as fl
    op = fl.Operator("frozen")
    Thing = fl.kind("frozen.example.com/v1", "Thing")
    turns = 0

    @op.reconcile(Thing, brake_after=float("inf"))  # This test needs an operator that never stops writing.
    async def write(obj, ctx):
        global turns
        turns += 1
        ctx.status(by=os.environ["WHO"], turn=turns)
        raise fl.RequeueAfter(0.05)
"""


@pytest.mark.slow
async def test_suspended_process_writes_nothing_after_its_lease_has_ended(api, tmp_path):
    file, kubeconfig = tmp_path / "frozen.py", tmp_path / "kubeconfig"
    file.write_text(textwrap.dedent(OPERATOR))
    write_private(kubeconfig, kubeconfig_text(api.url, api.token, api.ca_data))
    client = Client(api.transport(), fl.World())
    await install_missing(client, [Thing])
    await client.create(Thing("thing", "default", spec={}))
    async with contextlib.AsyncExitStack() as stack:
        first_process = await start(stack, file, kubeconfig, "a")
        assert await wait_for_next_writer(client) == "a"
        second_process = await start(stack, file, kubeconfig, "b")
        first_process.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(40):
            while await wait_for_next_writer(client) != "b":
                pass
        first_process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(10):
            writers = {await wait_for_next_writer(client) for _ in range(50)}
            assert await first_process.wait() == 1
        assert b"lease default/frozen is lost" in await first_process.stderr.read()
        assert writers == {"b"}
        assert second_process.returncode is None


async def start(stack, file, kubeconfig, identity):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead", "run", file, "--kubeconfig", kubeconfig, "--leader-elect"),
        env={**os.environ, "WHO": identity},
        stderr=asyncio.subprocess.PIPE,
    )

    async def stop():
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()

    stack.push_async_callback(stop)
    return process


async def wait_for_next_writer(client):
    """Wait for the next write of the status and return the process that sent it."""
    async with client.watch(Thing, "default") as watch:
        write_count = 0
        async for _, frame in watch:
            status = msgspec.json.decode(frame).get("status") or {}
            write_count += 1
            if write_count > 1 and "by" in status:  # The first event is the existing object.
                return status["by"]
    raise AssertionError("the watch ended")
