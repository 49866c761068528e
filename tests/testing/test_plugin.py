"""Tests of the pytest plugin in a project of a user."""

import os
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from fairlead.testing.real import RealServer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


class Reports:
    """Records the outcome and the failure text of each test."""

    def __init__(self):
        self.outcomes, self.failures = Counter(), ""

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or not report.passed:
            self.outcomes[report.outcome] += 1
            self.failures += report.longreprtext if report.failed else ""


def run(folder, *args):
    """Run pytest in this process without this project's configuration. A new process would take seconds."""
    reports = Reports()
    quiet = ("-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:xdist")
    args = ["-W", "ignore:The configuration option", *args]  # pytest-asyncio warns without configuration.
    pytest.main(["-c", os.devnull, "--rootdir", str(folder), *quiet, *args], plugins=[reports])
    return reports


@pytest.mark.parametrize("plugins", [(), ("-p", "no:asyncio")], ids=["beside pytest-asyncio", "without it"])
def test_the_tests_in_docs_examples_pass(plugins):
    completed = run(EXAMPLES, str(EXAMPLES / "test_greeter.py"), *plugins)
    assert completed.outcomes == {"passed": 5}, completed.failures


@pytest.mark.real
def test_the_tests_in_docs_examples_pass_on_a_real_server(real_server, monkeypatch):
    monkeypatch.setattr(RealServer, "__enter__", lambda _: real_server)  # Use the running server.
    completed = run(EXAMPLES, str(EXAMPLES / "test_greeter.py"), "--api-server=real")
    assert completed.outcomes == {"passed": 3, "skipped": 2}, completed.failures


def test_failure_report_starts_in_the_test_and_names_the_error_once(tmp_path):
    (tmp_path / "test_failing.py").write_text(
        textwrap.dedent(
            """
            import fairlead as fl
            Thing = fl.kind("t.example.com/v1", "Thing")
            op = fl.Operator("failing")

            @op.reconcile(Thing)
            async def reconcile(obj, ctx):
                raise ValueError("no such colour")

            async def test_it(cluster, operator):
                await cluster.create(Thing("thing"))
                await operator(op)
                await cluster.wait_until_idle(within=60)
            """
        )
    )
    completed = run(tmp_path, str(tmp_path))
    report, _, log = completed.failures.partition("Captured log call")
    assert report.count("no such colour") == 1
    assert "asyncio" not in report
    assert log.count("Traceback") <= 1


def test_time_is_virtual_by_default_and_a_stuck_operator_is_reported(tmp_path):
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
                await cluster.wait_until_idle()
            """
        )
    )
    completed = run(tmp_path, str(tmp_path))
    assert completed.outcomes == {"passed": 2, "failed": 1}, completed.failures
    assert "still busy after 90 s; failing: thing " in completed.failures
    assert "no such colour" in completed.failures


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("def test_it(cluster): cluster.wait_until_idle()", "must be `async def`"),
        ("def test_it(operator): operator(None)", "must be `async def`"),
        ("async def test_it(cluster): await cluster.wait_until_idle()", "await operator(op) first"),
        ("async def test_it(operator): await operator(fl)", "fairlead.Operator, not module"),
        ("async def test_it(cluster, created): ...", "not in an async fixture"),
    ],
)
def test_a_wrong_use_of_the_fixtures_names_the_right_one(tmp_path, test, message):
    fixture = "@pytest_asyncio.fixture\nasync def created(cluster): await cluster.create(fl.ConfigMap('created'))"
    test_file = f"import pytest, pytest_asyncio, fairlead as fl\n{fixture}\n{test}\n"
    (tmp_path / f"{tmp_path.name}.py").write_text(test_file)
    completed = run(tmp_path, str(tmp_path))
    assert completed.outcomes == {"failed": 1}
    assert message in completed.failures


def test_the_cluster_accepts_plain_dicts(tmp_path):
    test_file = """
        async def test_it(cluster):
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
            made = dict(await cluster.create(made))
            assert (await cluster.edit(made, data={"a": "b"}))["data"] == {"a": "b"}
            await cluster.delete(made)
        """
    (tmp_path / "test_dicts.py").write_text(textwrap.dedent(test_file))
    completed = run(tmp_path, str(tmp_path))
    assert completed.outcomes == {"passed": 1}, completed.failures


def test_an_unknown_server_in_the_environment_stops_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_API_SERVER", "rael")
    (tmp_path / "test_it.py").write_text("async def test_it(cluster): ...")
    assert run(tmp_path, str(tmp_path)).outcomes == {}
