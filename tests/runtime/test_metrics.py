"""The metrics of an operator: fairlead's, its author's and those of the process."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from prometheus_client import REGISTRY, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

import fairlead as fl

Thing = fl.kind("test.example.com/v1", "Thing")
REFERENCE = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text(encoding="utf-8")


def value_of(running, name, **labels):
    return running.metrics.registry.get_sample_value(name, labels)


def test_metrics_of_the_operator_are_served_beside_those_of_fairlead(run_in_virtual_time):
    async def test(cluster):
        op = fl.Operator("tester")
        greetings = Counter("greetings", "Greetings sent", registry=op.metrics)

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            greetings.inc()

        await cluster.create("a")
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            text = running.metrics.text().decode()
            assert re.search(r"^greetings_total [12]\.0$", text, re.MULTILINE)
            assert 'controller_runtime_reconcile_total{controller="thing",result="success"}' in text

    run_in_virtual_time(test)


@pytest.mark.skipif(sys.platform != "linux", reason="prometheus_client reads /proc")
def test_metrics_of_the_process_are_served_as_documented(run_in_virtual_time):
    async def test(cluster):
        async with cluster.running(fl.Operator("tester")) as running:
            text = running.metrics.text().decode()
        section = REFERENCE.partition("## Metrics of the process")[2].partition("## ")[0]
        names = re.findall(r"`((?:process|python)_\w+)`", section)
        assert len(names) == 9
        for name in names:
            assert re.search(rf"^{name}[ {{]", text, re.MULTILINE), name

    run_in_virtual_time(test)


def test_metric_without_a_registry_is_served_too(run_in_virtual_time):
    counter = Counter("declared_without_a_registry", "A metric")
    try:

        async def test(cluster):
            async with cluster.running(fl.Operator("tester")) as running:
                assert "declared_without_a_registry_total 0.0" in running.metrics.text().decode()

        run_in_virtual_time(test)
    finally:
        REGISTRY.unregister(counter)


def test_metric_with_a_name_of_fairlead_or_an_error_is_left_out_and_logged_once(run_in_virtual_time, caplog):
    class Broken(Collector):
        broken = False

        def collect(self):
            if self.broken:
                raise ZeroDivisionError
            yield GaugeMetricFamily("workqueue_depth", "Not ours", 17)

    async def test(cluster):
        op, broken = fl.Operator("tester"), Broken()
        op.metrics.register(broken)
        async with cluster.running(op) as running:
            for _ in range(2):
                text = running.metrics.text().decode()
                assert "17" not in re.findall(r"^workqueue_depth (\S+)", text, re.MULTILINE)
                assert text.count("# HELP workqueue_depth ") == 1
            broken.broken = True
            assert "controller_runtime_active_workers" in running.metrics.text().decode()

    run_in_virtual_time(test)
    messages = [record.getMessage() for record in caplog.records if record.name == "fairlead.metrics"]
    assert messages == [
        "the metric workqueue_depth is not served, because another one has this name",
        "the operator's metrics are not served, because a collector raised ZeroDivisionError()",
    ]


def test_passes_errors_and_skipped_writes_are_counted(run_in_virtual_time):
    async def test(cluster):
        op, errors = fl.Operator("tester"), [KeyError("who"), fl.Terminal("BadSpec"), TimeoutError()]

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def reconcile(obj, ctx):
            await ctx.apply(fl.ConfigMap(obj.name, data={"a": "b"}))
            if errors:
                raise errors.pop(0)

        await cluster.create("a")
        async with cluster.running(op) as running:
            await asyncio.sleep(60)
            running.resync()
            await asyncio.sleep(60)
            prefix = "controller_runtime_reconcile"
            assert errors == []
            assert value_of(running, f"{prefix}_total", controller="thing", result="error") == 3
            assert value_of(running, f"{prefix}_errors_total", controller="thing") == 3
            assert value_of(running, f"{prefix}_panics_total", controller="thing") == 1
            assert value_of(running, "controller_runtime_terminal_reconcile_errors_total", controller="thing") == 1
            passes = sum(
                value_of(running, f"{prefix}_total", controller="thing", result=result) or 0
                for result in ("success", "error", "requeue", "requeue_after")
            )
            assert value_of(running, f"{prefix}_time_seconds_count", controller="thing") == passes
            assert value_of(running, "fairlead_unchanged_writes_total", controller="thing") > 0

    run_in_virtual_time(test)


CONTROLLER_RUNTIME_NAMES = """
controller_runtime_reconcile_total controller_runtime_reconcile_errors_total controller_runtime_reconcile_panics_total
controller_runtime_terminal_reconcile_errors_total controller_runtime_reconcile_timeouts_total
controller_runtime_reconcile_time_seconds controller_runtime_max_concurrent_reconciles controller_runtime_active_workers
workqueue_depth workqueue_adds_total workqueue_queue_duration_seconds workqueue_work_duration_seconds
workqueue_unfinished_work_seconds workqueue_longest_running_processor_seconds workqueue_retries_total
rest_client_requests_total leader_election_master_status leader_election_slowpath_total
"""


@pytest.mark.parametrize("name", CONTROLLER_RUNTIME_NAMES.split())
def test_metric_of_controller_runtime_has_the_same_name(name):
    assert f"| `{name}` |" in REFERENCE
