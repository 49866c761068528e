"""Tests that SIGTERM ends a real `fairlead run` process within its time limit, whatever user code does."""

import asyncio
import contextlib
import os
import signal
import sys
import textwrap

import pytest

import fairlead as fl
from fairlead.api.files import write_private
from fairlead.cli.serve import kubeconfig_text
from fairlead.client.client import Client

OPERATOR = """
    import asyncio, collections, itertools, threading, time
    import fairlead as fl

    op = fl.Operator("stubborn")

    @op.reconcile(fl.ConfigMap, when=lambda obj: obj.name == "stubborn")
    async def never_ends(obj, ctx):
        print("started", flush=True)
        BODY
"""
HOOK = """
    @op.shutdown
    HOOK
"""

IGNORE_CANCELLATION = """
        while True:
            try:
                await asyncio.sleep(1e5)
            except asyncio.CancelledError:
                pass
"""
BLOCKING = {
    "a busy loop": "while True: pass",
    "time.sleep": "time.sleep(1e5)",
    "a C call that holds the interpreter lock": "collections.deque(itertools.repeat(None), maxlen=0)",
}
"""User code that blocks the event loop. Only the watchdog can end the process."""

LINGERING = {
    "a thread of asyncio": ("await asyncio.to_thread(time.sleep, 1e5)", "thread asyncio_0 does not end"),
    "a thread": ("threading.Thread(target=time.sleep, args=(1e5,), name='mine').start()", "thread mine does not end"),
    "a handler": ("await asyncio.sleep(1e5)", ""),
    "a handler that ignores its cancellation": (IGNORE_CANCELLATION, "stubborn does not end after its cancellation"),
}
HOOKS = {
    "a hook": "async def hang(resources): await asyncio.sleep(1e5)",
    "a hook in a thread": "def hang(resources): time.sleep(1e5)",
}


@pytest.fixture
async def run_operator(api, tmp_path):
    """Return a function that runs an operator and sends SIGTERM in a pass. It returns the exit status and the log."""
    async with contextlib.AsyncExitStack() as stack:

        async def run(source, *options, seconds=2):
            file, kubeconfig = tmp_path / "stubborn.py", tmp_path / "kubeconfig"
            file.write_text(textwrap.dedent(source))
            write_private(kubeconfig, kubeconfig_text(api.url, api.token, api.ca_data))
            client = Client(api.transport(), fl.World())
            await client.create(fl.ConfigMap("stubborn", api.namespace))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "fairlead", "run", file, "--kubeconfig", kubeconfig, "-n", api.namespace),
                *("--shutdown-timeout", str(seconds)),
                *options,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=os.environ,
            )

            async def kill():
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.communicate()

            stack.push_async_callback(kill)
            async with asyncio.timeout(120):  # Only against a hang: the code never ends by itself.
                assert await process.stdout.readline() == b"started\n"
                process.send_signal(signal.SIGTERM)
                _, log = await process.communicate()
            return process.returncode, log.decode()

        yield run


@pytest.mark.parametrize("how", BLOCKING)
async def test_code_that_blocks_the_loop_is_ended_with_its_stack(run_operator, how):
    code, log = await run_operator(OPERATOR.replace("BODY", BLOCKING[how]))
    assert code == -signal.SIGABRT
    assert "the operator did not stop within 2 s, because user code does not end: ending it now" in log
    stack = log[log.index("ending it now") :]
    assert "stubborn.py" in stack
    assert "in never_ends\n" in stack


async def test_line_about_the_end_is_json_in_a_json_log(run_operator):
    code, log = await run_operator(OPERATOR.replace("BODY", "while True: pass"), "--log-format", "json")
    assert code == -signal.SIGABRT
    (line,) = [line for line in log.splitlines() if "did not stop within" in line]
    assert line.startswith('{"time": ')


@pytest.mark.only("embedded", reason="the server has no part in it")
@pytest.mark.parametrize("how", LINGERING)
async def test_code_that_lingers_is_abandoned(run_operator, how):
    body, message = LINGERING[how]
    code, log = await run_operator(OPERATOR.replace("BODY", body), seconds=8)
    assert code == 0, log
    assert message in log
    assert "did not stop within" not in log


@pytest.mark.only("embedded", reason="the server has no part in it")
@pytest.mark.parametrize("how", HOOKS)
async def test_shutdown_hook_that_hangs_is_cancelled(run_operator, how):
    code, log = await run_operator(OPERATOR.replace("BODY", "pass") + HOOK.replace("HOOK", HOOKS[how]), seconds=8)
    assert code == 0, log
    assert "shutdown hook hang did not end within 0.64 s and was cancelled" in log


@pytest.mark.only("embedded", reason="the server has no part in it")
async def test_log_of_a_blocked_loop_has_the_object_and_a_stack_of_lines(run_operator):
    _, log = await run_operator(OPERATOR.replace("BODY", "time.sleep(1e5)"))
    (number, line) = next((n, line) for n, line in enumerate(log.splitlines()) if "has been blocked" in line)
    assert "by configmap" in line
    assert "/stubborn, so nothing else runs" in line
    stack = log.splitlines()[number + 1 :]
    assert stack[0].startswith("    File ")
    assert any(line.endswith("in never_ends") for line in stack)
    assert "\\n" not in line
