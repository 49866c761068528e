"""Requests and responses as the server handles them, independent of the transport."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from fairlead.server.authentication.users import ANONYMOUS, User
from fairlead.server.webhooks.calls import RequestMemory

if TYPE_CHECKING:
    from fairlead.server.audit import AuditedRequest
    from fairlead.server.storage.replica import Replica


T = TypeVar("T")


@dataclass(slots=True)
class Request:
    """A request as it arrived, with the user and the decision that authentication and authorization add.

    Header names are lower-case. If a header was sent several times, the first value counts; of Impersonate-* headers
    all values count, one per line. `query` keeps every value of a key in order.
    """

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""
    warnings: list[str] = field(default_factory=list)  # the warnings that the response will carry
    time: float = 0.0  # when it arrived, by the server's clock
    certificate_user: User | None = None  # the user that the client's certificate names
    source_address: str = ""  # the client's IP address
    user: User = ANONYMOUS  # the user that the request acts as; set by authentication
    impersonator: User | None = None  # the user who sent it, if that is another one
    constraint: str = ""  # the constrained verb that allowed the impersonation
    allowed: bool | None = None  # the authorizer's decision; None before it
    reason: str = ""  # the authorizer's reason
    memory: RequestMemory = field(default_factory=RequestMemory)  # what it keeps while it waits for webhooks
    audit: "AuditedRequest | None" = None  # how the audit log will show it
    audit_annotations: dict[str, str] = field(default_factory=dict)  # added to the audit event by admission plugins
    replica: "Replica | None" = None  # the lagging replica that serves the request, if the fault plan says so

    def first(self, key: str, default: str = "") -> str:
        """Return the first value of a query parameter, or `default` if the parameter is absent."""
        values = self.query.get(key)
        return values[0] if values else default

    def warn(self, warning: str) -> None:
        """Add a warning to the response, unless the response already has the same warning."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def remember(self, name: str, create: Callable[[], T]) -> T:
        """Return a value that stays the same if the request runs again after it waited for a webhook."""
        values = self.memory.values
        if name not in values:
            values[name] = create()
        value: T = values[name]
        return value

    @property
    def media_type(self) -> str:
        """The Content-Type of the body in lower case, without parameters such as charset."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Response:
    """A response whose whole body is known."""

    __slots__ = ("body", "headers", "status", "warnings")

    def __init__(
        self, status: int, body: bytes, content_type: str = "application/json", warnings: list[str] | None = None
    ) -> None:
        self.status = status
        self.body = body
        self.headers: dict[str, str] = {"Content-Type": content_type}
        self.warnings: list[str] = warnings or []


class StreamingResponse:
    """A response whose body is sent in chunks until the server or the client ends it: a watch."""

    __slots__ = ("chunks", "headers", "status", "warnings")

    def __init__(self, chunks: AsyncIterator[bytes], content_type: str = "application/json") -> None:
        self.status = 200
        self.chunks = chunks
        self.headers: dict[str, str] = {"Content-Type": content_type}
        self.warnings: list[str] = []


AnyResponse = Response | StreamingResponse


class ConnectionDropped(ConnectionResetError):
    """Raised if the connection broke before a response was sent.

    The client cannot know whether the request was executed.
    """


def format_warning(warning: str) -> str:
    """Return the value of a Warning header as Kubernetes sends it, for example `299 - "unknown field"`."""
    escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
