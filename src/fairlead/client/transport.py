"""The protocol between a client and a server: HTTP requests and responses as bytes, over any connection.

`HttpTransport` (`http.py`) implements it over sockets. The embedded server's in-process transport implements it by
shape, without importing this module.
"""

from collections.abc import Mapping
from typing import Protocol

from fairlead.api.requests import HttpRequest


class Response(Protocol):
    """A complete HTTP response."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...

    @property
    def warnings(self) -> list[str]:
        """Return the value of each Warning header, unparsed."""


class Stream(Protocol):
    """An HTTP response whose body is still arriving, such as a watch.

    The caller closes it. Closing does not wait for the rest of the body.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """Return the next bytes of the body, or b"" at its end.

        Chunks may end anywhere, also inside a line. Raises OSError when the connection broke.
        """

    async def close(self) -> None: ...


class Transport(Protocol):
    """A connection to one server.

    Guarantees: it sends each request at most once, and is safe for concurrent use on one event loop.

    Does not guarantee: a retry, a redirect or any interpretation of a status code. Every status returns normally.

    Raises: `NotSent` (an OSError) if the server certainly did not receive the request. Any other OSError, and
    TimeoutError, mean that the server may have received it.
    """

    async def request(self, request: HttpRequest) -> Response:
        """Send the request and return the complete response. `request.timeout` bounds the whole exchange."""

    async def stream(self, request: HttpRequest) -> Stream:
        """Send the request and return as soon as the response headers arrived.

        `request.timeout` bounds the wait for the headers, not the stream.
        """

    async def close(self) -> None: ...


class NotSent(ConnectionError):
    """The request never reached the server, so a write did not happen. Check the address and retry."""
