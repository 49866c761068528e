"""What a user's own tests get from the pytest plugin."""

import os
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from fairlead.testing.real import RealServer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


class Reports:
    """What became of each test, and why."""

    def __init__(self):
        self.outcomes, self.told = Counter(), ""

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or not report.passed:
            self.outcomes[report.outcome] += 1
            self.told += report.longreprtext if report.failed else ""


def run(folder, *args):
    """pytest as a user runs it, with no configuration of ours, in this process: another takes seconds to start."""
    reports = Reports()
    quiet = ("-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:xdist")
    args = ["-W", "ignore:The configuration option", *args]  # pytest-asyncio wants to be configured
    pytest.main(["-c", os.devnull, "--rootdir", str(folder), *quiet, *args], plugins=[reports])
    return reports


@pytest.mark.parametrize("plugins", [(), ("-p", "no:asyncio")], ids=["beside pytest-asyncio", "without it"])
def test_the_examples_of_the_docs_pass(plugins):
    done = run(EXAMPLES, str(EXAMPLES / "test_greeter.py"), *plugins)
    assert done.outcomes == {"passed": 4}, done.told


@pytest.mark.real
def test_the_same_tests_pass_on_a_real_server(real_server, monkeypatch):
    monkeypatch.setattr(RealServer, "__enter__", lambda _: real_server)  # one that runs already
    done = run(EXAMPLES, str(EXAMPLES / "test_greeter.py"), "--api-server=real")
    assert done.outcomes == {"passed": 2, "skipped": 2}, done.told


def test_every_example_in_the_docs_is_one_that_runs():
    text = (ROOT / "docs" / "testing.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) >= 4
    examples = (EXAMPLES / "test_greeter.py").read_text()
    assert [block for block in blocks if block not in examples] == []


def test_time_is_virtual_unless_real_time_is_asked_for_and_failures_are_told(tmp_path):
    (tmp_path / "test_its_time.py").write_text(
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
    done = run(tmp_path, str(tmp_path))
    assert done.outcomes == {"passed": 2, "failed": 1}, done.told
    assert "not settled after 90 s; failing: thing " in done.told
    assert "no such colour" in done.told


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("def test_it(cluster): cluster.settle()", "make it `async def`"),
        ("def test_it(operator): operator(None)", "make it `async def`"),
        ("async def test_it(cluster): await cluster.settle()", "await operator(op) first"),
        ("async def test_it(operator): await operator(fl)", "fairlead.Operator, not module"),
        ("async def test_it(cluster, made): ...", "not in an async fixture"),
    ],
)
def test_what_is_used_wrongly_says_how_to_use_it(tmp_path, test, told):
    fixture = "@pytest_asyncio.fixture\nasync def made(cluster): await cluster.create(fl.ConfigMap('made'))"
    text = f"import pytest, pytest_asyncio, fairlead as fl\n{fixture}\n{test}\n"
    (tmp_path / f"{tmp_path.name}.py").write_text(text)
    done = run(tmp_path, str(tmp_path))
    assert done.outcomes == {"failed": 1}
    assert told in done.told


def test_plain_dicts_will_do(tmp_path):
    text = """
        async def test_it(cluster):
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
            made = dict(await cluster.create(made))
            assert (await cluster.edit(made, data={"a": "b"}))["data"] == {"a": "b"}
            await cluster.delete(made)
        """
    (tmp_path / "test_dicts.py").write_text(textwrap.dedent(text))
    done = run(tmp_path, str(tmp_path))
    assert done.outcomes == {"passed": 1}, done.told


def test_a_server_that_does_not_exist_is_not_taken_for_another(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_API_SERVER", "rael")
    (tmp_path / "test_it.py").write_text("async def test_it(cluster): ...")
    assert run(tmp_path, str(tmp_path)).outcomes == {}
