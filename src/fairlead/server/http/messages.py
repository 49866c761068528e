"""One exchange with a client, whatever door it came through."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.server.authentication.users import ANONYMOUS, User

if TYPE_CHECKING:
    from fairlead.server.faults.replica import Replica


@dataclass(slots=True)
class Request:
    """A request as it arrived.

    Header names are lower-case; of one that came several times the first counts, of Impersonate-* ones each, by lines.
    `query` keeps every value of a key in order.
    """

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""
    warnings: list[str] = field(default_factory=list)  # what the answer will warn of
    time: float = 0.0  # when it arrived, by the server's clock
    certified: User | None = None  # whom the client's certificate names
    source: str = ""  # the address it came from
    user: User = ANONYMOUS  # who it is taken to be from, once that is known
    impersonator: User | None = None  # who really sent it, where that is someone else
    constraint: str = ""  # the finer verb that let them
    allowed: bool | None = None  # what authorization said, once it has
    reason: str = ""  # and why
    replica: "Replica | None" = None  # who answers instead, where that may be stale

    def first(self, key: str, default: str = "") -> str:
        values = self.query.get(key)
        return values[0] if values else default

    def warn(self, text: str) -> None:
        """Add a warning to the answer, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    @property
    def media_type(self) -> str:
        """The content type of the body, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Response:
    """A whole answer."""

    __slots__ = ("body", "headers", "status", "warnings")

    def __init__(
        self, status: int, body: bytes, content_type: str = "application/json", warnings: list[str] | None = None
    ) -> None:
        self.status = status
        self.body = body
        self.headers: dict[str, str] = {"Content-Type": content_type}
        self.warnings: list[str] = warnings or []


class StreamingResponse:
    """An answer that goes on until the server or the client ends it."""

    __slots__ = ("chunks", "headers", "status", "warnings")

    def __init__(self, chunks: AsyncIterator[bytes], content_type: str = "application/json") -> None:
        self.status = 200
        self.chunks = chunks
        self.headers: dict[str, str] = {"Content-Type": content_type}
        self.warnings: list[str] = []


AnyResponse = Response | StreamingResponse


class ConnectionDropped(ConnectionResetError):
    """The connection broke before an answer was sent. Whether the request was carried out, the client cannot know."""


def format_warning(text: str) -> str:
    """A Warning header as Kubernetes sends it: code 299, no agent, quoted text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
