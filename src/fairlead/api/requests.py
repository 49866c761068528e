"""The HTTP request that a client passes to a transport."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One outgoing HTTP request.

    `path` starts with a slash and is already percent-encoded; `query` is not. None and an empty mapping mean the same.
    `timeout` is in seconds; None means that the caller sets no deadline. A transport calls `before_send` at the last
    moment before the request leaves, and does not send the request if it raises. The representation leaves out the
    headers and the body, because they may hold credentials.

    Example:
        request = HttpRequest("GET", "/api/v1/pods", query={"limit": "500"}, timeout=30)
        first_page = await transport.request(request)
        quick = dataclasses.replace(request, timeout=1)
    """

    method: str
    path: str
    query: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    body: bytes | None = field(default=None, repr=False)
    timeout: float | None = None
    before_send: Callable[[], object] | None = field(default=None, repr=False, compare=False)
