"""OpenTelemetry traces of a run: a span for each pass, and a child span for each request. Needs `fairlead[otel]`.

This module is the only one that imports opentelemetry, and nothing imports it unless traces are asked for.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider

from fairlead.api.history import ENDED, REQUEST, WOKEN, WRITTEN, Cause, ObjectRef, Record
from fairlead.api.history_text import describe_causes, format_seconds
from fairlead.runtime import logs

if TYPE_CHECKING:
    from fairlead.runtime.running import Running

K = TypeVar("K")

MAX_REMEMBERED = 10_000
"""The spans of earlier passes and writes that a later pass can link to."""


class Tracing:
    """Makes spans from the history of a run. Pass it as a subscriber: `op.run(…, subscribers=[Tracing()])`.

    Guarantees: the span of a pass is the current span in the handler, so that spans of other libraries become its
    children. A pass that our own write caused has a link to the span of the pass that wrote; a retry and a timer have a
    link to the previous pass of the object. Log lines of a pass carry its trace id and span id.

    Does not guarantee: a link to changes of other programs. The attribute `fairlead.causes` names them.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("fairlead", tracer_provider=provider)
        self._passes: dict[str, tuple[Span, Any]] = {}
        self._last: OrderedDict[tuple[str, ObjectRef | None], SpanContext] = OrderedDict()
        self._written: OrderedDict[tuple[ObjectRef | None, str], SpanContext] = OrderedDict()

    def __call__(self, running: "Running") -> None:
        """Subscribe to the history of the run."""
        history = running.history
        history.subscribe(self._begin_pass, [WOKEN])
        history.subscribe(self._on_request, [REQUEST])
        history.subscribe(self._on_write, [WRITTEN])
        history.subscribe(self._end_pass, [ENDED])

    def _begin_pass(self, record: Record) -> None:
        attributes = {
            "fairlead.controller": record.actor,
            "fairlead.reconcile_id": record.pass_id,
            "fairlead.causes": describe_causes(record),
            **_object_attributes(record.object),
        }
        span = self._tracer.start_span(
            f"reconcile {record.object.kind if record.object is not None else ''}",
            context=otel_context.Context(),  # a new trace: a pass has no parent, only causes
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            links=[Link(linked, {"fairlead.cause": cause.source}) for cause, linked in self._find_links(record)],
            start_time=_nanoseconds(record.time),
        )
        token = otel_context.attach(trace.set_span_in_context(span))
        self._passes[record.pass_id] = span, token
        spanned = span.get_span_context()
        logs.add_fields(trace_id=f"{spanned.trace_id:032x}", span_id=f"{spanned.span_id:016x}")

    def _find_links(self, record: Record) -> list[tuple[Cause, SpanContext]]:
        links: dict[int, tuple[Cause, SpanContext]] = {}  # by span id
        for cause in record.causes:
            if cause.source in ("retry", "conflict", "requeue_after"):
                linked = self._last.get((record.actor, record.object))
            else:
                linked = self._written.get((cause.object, cause.version))
            if linked is not None:
                links.setdefault(linked.span_id, (cause, linked))
        return list(links.values())

    def _on_request(self, record: Record) -> None:
        in_pass = self._passes.get(record.pass_id)
        if in_pass is None:
            return  # A watch, a lease or discovery: it belongs to no pass.
        end = _nanoseconds(record.time)
        span = self._tracer.start_span(
            f"{record.verb} {record.path}",
            context=trace.set_span_in_context(in_pass[0]),
            kind=SpanKind.CLIENT,
            attributes={"http.request.method": record.verb, "url.path": record.path},
            start_time=end - _nanoseconds(record.seconds),
        )
        if record.outcome.isdecimal():
            span.set_attribute("http.response.status_code", int(record.outcome))
        if not record.outcome.isdecimal() or int(record.outcome) >= 400:
            span.set_status(Status(StatusCode.ERROR, record.outcome))
        span.end(end_time=end)

    def _on_write(self, record: Record) -> None:
        in_pass = self._passes.get(record.pass_id)
        if in_pass is None:
            return
        span = in_pass[0]
        paths = [change.path for change in record.fields]
        attributes = {"fairlead.verb": record.verb, "fairlead.outcome": record.outcome, "fairlead.fields": paths}
        span.add_event("write", {**attributes, **_object_attributes(record.object)})
        if record.version:
            _remember(self._written, (record.object, record.version), span.get_span_context())

    def _end_pass(self, record: Record) -> None:
        in_pass = self._passes.pop(record.pass_id, None)
        if in_pass is None:
            return
        span, token = in_pass
        span.set_attribute("fairlead.outcome", record.outcome)
        if record.reason:
            span.set_attribute("fairlead.reason", record.reason)
        if record.next_look is not None:
            span.set_attribute("fairlead.next_pass", format_seconds(record.next_look))
        if record.outcome == "error":
            span.set_status(Status(StatusCode.ERROR, record.reason))
        span.end(end_time=_nanoseconds(record.time))
        otel_context.detach(token)
        _remember(self._last, (record.actor, record.object), span.get_span_context())


def _object_attributes(ref: ObjectRef | None) -> dict[str, str]:
    if ref is None:
        return {}
    namespace = {"k8s.namespace.name": ref.namespace} if ref.namespace else {}
    return {"fairlead.object.kind": ref.kind, "fairlead.object.name": ref.name, **namespace}


def _remember(spans: OrderedDict[K, SpanContext], key: K, span: SpanContext) -> None:
    spans.pop(key, None)
    spans[key] = span
    if len(spans) > MAX_REMEMBERED:
        spans.popitem(last=False)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
