"""`fairlead run --trace`: send OpenTelemetry traces to a collector."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead.api.errors import UserError

if TYPE_CHECKING:
    from fairlead.runtime.running import Running

FLUSH_SECONDS = 5.0
"""At the end, the last spans are sent for at most this long: a collector that is down must not delay the stop."""


@contextmanager
def exporting_traces(service: str) -> "Iterator[Callable[[Running], None]]":
    """Yield a subscriber that sends the spans of a run to the collector of the OTEL_EXPORTER_OTLP_* variables.

    Raises UserError if the packages of `fairlead[otel]` are not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from fairlead.runtime.tracing import Tracing
    except ImportError as error:
        raise UserError(f"--trace needs OpenTelemetry ({error}): pip install 'fairlead[otel]'") from error

    # The variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override the name.
    provider = TracerProvider(
        resource=Resource({"service.name": service}).merge(Resource.create()), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield Tracing(provider)
    finally:
        # A daemon thread: the process does not wait for it.
        stopping = threading.Thread(target=provider.shutdown, name="fairlead traces", daemon=True)
        stopping.start()
        stopping.join(FLUSH_SECONDS)
