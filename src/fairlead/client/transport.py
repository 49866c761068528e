"""The Python protocol that a client uses to send HTTP requests, over sockets or in one process.

`HttpTransport` (`http.py`) implements the protocol over sockets. The embedded server has an in-process transport with
the same methods, which does not import this module.
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
        """Return the text of each Warning header, unparsed."""


class Stream(Protocol):
    """An HTTP response whose body is still arriving, such as a watch.

    The caller closes the stream. `close` does not wait for the rest of the body.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """Return the next bytes of the body, or b"" at the end of the body.

        The bytes may end anywhere, also inside a line. Raises OSError when the connection broke.
        """

    async def close(self) -> None: ...


class Transport(Protocol):
    """A connection to one server.

    Guarantees: each request is sent at most once, and only if its `before_send` does not raise. Safe for concurrent use
    on one event loop.

    Does not guarantee: retries or redirects. A response with an error status is returned like any other.

    Raises: `NotSent` (an OSError) if the server certainly did not receive the request. Any other OSError, and
    TimeoutError, mean that the server may have received the request. One of them is `UnusableAnswer`.
    """

    async def request(self, request: HttpRequest) -> Response:
        """Send the request and return the complete response. `request.timeout` limits the seconds of both together."""

    async def stream(self, request: HttpRequest) -> Stream:
        """Send the request and return the stream of the response as soon as its headers arrived.

        `request.timeout` limits the seconds until the headers arrive, not those of the stream.
        """

    async def close(self) -> None: ...


class NotSent(ConnectionError):
    """The request never reached the server, so a write did not happen. Check the address and retry."""


class UnusableAnswer(ConnectionError):
    """The answer is larger than the client accepts, or compressed although the client did not ask for it.

    A retry would receive the same answer, so there is none. Check the server's address and the proxies on the way.
    """
