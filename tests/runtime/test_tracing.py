"""OpenTelemetry: a span for each pass with links to its causes, and a child span for each request."""

import asyncio
import logging
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import fairlead as fl
from fairlead.api.errors import UserError
from fairlead.cli.tracing import exporting_traces
from fairlead.runtime import logs
from fairlead.runtime.tracing import Tracing

Thing = fl.kind("test.example.com/v1", "Thing")


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider)


def passes_of(exporter):
    return [span for span in exporter.get_finished_spans() if span.name.startswith("reconcile ")]


def requests_of(exporter, span):
    parent = span.context.span_id
    return [each for each in exporter.get_finished_spans() if each.parent and each.parent.span_id == parent]


def test_pass_is_a_span_with_a_child_span_for_each_request(run_in_virtual_time, exporter, tracing):
    async def test(cluster):
        op = fl.Operator("tester")

        @op.reconcile(Thing, owns=[fl.ConfigMap])
        async def reconcile(obj, ctx):
            await ctx.apply(fl.ConfigMap(obj.name, data={"a": "b"}))

        await cluster.create("a")
        async with cluster.running(op, subscribers=[tracing]) as running:
            await running.wait_until_idle()

    run_in_virtual_time(test)
    first, *_ = passes_of(exporter)
    assert first.name == "reconcile Thing"
    assert first.parent is None
    assert first.attributes["fairlead.controller"] == "tester/thing"
    assert first.attributes["fairlead.causes"] == "start: the object exists"
    assert first.attributes["fairlead.object.name"] == "a"
    assert first.attributes["k8s.namespace.name"] == "default"
    assert first.attributes["fairlead.outcome"] == "success"
    requests = requests_of(exporter, first)
    apply = next(span for span in requests if span.name == "PATCH /api/v1/namespaces/default/configmaps/a")
    assert apply.attributes["http.response.status_code"] == 201
    assert apply.context.trace_id == first.context.trace_id
    assert first.start_time <= apply.start_time <= apply.end_time <= first.end_time
    created = next(event for event in first.events if event.attributes["fairlead.outcome"] == "created")
    assert created.attributes["fairlead.object.kind"] == "ConfigMap"
    assert "data" in created.attributes["fairlead.fields"]


def test_pass_has_links_to_the_passes_that_caused_it(run_in_virtual_time, exporter, tracing):
    async def test(cluster):
        op, errors = fl.Operator("tester"), [KeyError("who")]

        @op.reconcile(Thing)
        async def reconcile(obj, ctx):
            if obj.spec.get("broken") and errors:
                raise errors.pop()
            ctx.status(phase="Done")

        await cluster.create("a")
        async with cluster.running(op, subscribers=[tracing]) as running:
            await running.wait_until_idle()
            await cluster.patch_thing("a", spec={"broken": True})
            await asyncio.sleep(10)

    run_in_virtual_time(test)
    first, echo, *_ = passes_of(exporter)
    assert first.links == ()
    (link,) = echo.links
    assert link.context == first.context
    assert link.attributes["fairlead.cause"] == "primary"
    failed = next(span for span in passes_of(exporter) if span.status.status_code is StatusCode.ERROR)
    assert failed.attributes["fairlead.causes"] == "Thing default/a modified (generation)"
    assert failed.links == ()  # The change came from somebody else.
    retry = next(span for span in passes_of(exporter) if "retry 1" in span.attributes["fairlead.causes"])
    assert failed.context in [link.context for link in retry.links]


@pytest.mark.parametrize("is_async", [True, False])
def test_span_of_the_pass_is_current_in_the_handler(run_in_virtual_time, exporter, tracing, is_async):
    seen = []

    async def test(cluster):
        op = fl.Operator("tester")

        async def reconcile(obj, ctx):
            seen.append(trace.get_current_span().get_span_context())

        def reconcile_in_thread(obj, ctx):
            seen.append(trace.get_current_span().get_span_context())

        op.reconcile(Thing)(reconcile if is_async else reconcile_in_thread)
        await cluster.create("a")
        async with cluster.running(op, subscribers=[tracing]) as running:
            await running.wait_until_idle()
        assert not trace.get_current_span().get_span_context().is_valid

    run_in_virtual_time(test)
    assert seen == [span.context for span in passes_of(exporter)]


def test_log_lines_of_a_pass_carry_the_trace_id(run_in_virtual_time, exporter, tracing):
    lines = []

    class Handler(logging.Handler):
        def emit(self, record):
            lines.append(self.format(record))

    async def test(cluster):
        op, handler = fl.Operator("tester"), Handler()
        handler.setFormatter(logs.Formatter(cluster.world))
        logger = logging.getLogger("fairlead.tester")
        logger.addHandler(handler)
        try:

            @op.reconcile(Thing)
            async def reconcile(obj, ctx):
                ctx.log.warning("in the handler")

            await cluster.create("a")
            async with cluster.running(op, subscribers=[tracing]) as running:
                await running.wait_until_idle()
                running.services.log.warning("outside")
        finally:
            logger.removeHandler(handler)

    run_in_virtual_time(test)
    first, *_ = passes_of(exporter)
    context = first.context
    assert f"in the handler controller=thing reconcile={first.attributes['fairlead.reconcile_id']}" in lines[0]
    assert lines[0].endswith(f"trace_id={context.trace_id:032x} span_id={context.span_id:016x}")
    assert "trace_id" not in lines[-1]


def test_nothing_of_opentelemetry_is_imported_without_tracing():
    code = (
        "import sys, fairlead, fairlead.cli.run, fairlead.cli.tracing, fairlead.runtime.running, fairlead.testing\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_extra_is_reported_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(UserError, match=r"pip install 'fairlead\[otel\]'"), exporting_traces("tester"):
        pass
