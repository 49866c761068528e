"""What a user's own tests get from the pytest plugin."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def run(folder, *args):
    """pytest as a user runs it: with no configuration of ours."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rA",
            "--rootdir",
            folder,
            "-c",
            "/dev/null",
            "-p",
            "no:cacheprovider",
            *args,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("plugins", [(), ("-p", "no:asyncio")], ids=["beside pytest-asyncio", "without it"])
def test_the_examples_of_the_docs_pass(plugins):
    done = run(EXAMPLES, "test_greeter.py", *plugins)
    assert "4 passed" in done.stdout, done.stdout


@pytest.mark.real
def test_the_same_tests_pass_on_a_real_server():
    done = run(EXAMPLES, "test_greeter.py", "--api-server=real")
    assert "2 passed, 2 skipped" in done.stdout, done.stdout


def test_every_example_in_the_docs_is_one_that_runs():
    text = (ROOT / "docs" / "testing.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) >= 4
    examples = (EXAMPLES / "test_greeter.py").read_text()
    assert [block for block in blocks if block not in examples] == []


def test_time_is_virtual_unless_real_time_is_asked_for_and_failures_are_told(tmp_path):
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import asyncio, time, pytest, fairlead as fl
            Thing = fl.kind("t.example.com/v1", "Thing")

            class TestIt:
                async def test_virtual(self, cluster):
                    began = time.monotonic()
                    await asyncio.sleep(3600)
                    assert time.monotonic() - began < 60

            @pytest.mark.real_time
            async def test_real(api_server):
                listening = await api_server.listen()
                await listening.close()

            async def test_stuck(cluster, operator):
                op = fl.Operator("tester")
                @op.reconcile(Thing)
                async def reconcile(obj, ctx):
                    raise ValueError("no such colour")
                await operator(op)
                await cluster.create(Thing("a", spec={}))
                await cluster.settle()
            """
        )
    )
    done = run(tmp_path)
    assert "2 passed" in done.stdout, done.stdout
    assert "not settled after 90 s; failing: thing " in done.stdout
    assert "no such colour" in done.stdout
