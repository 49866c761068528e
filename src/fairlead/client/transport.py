"""The seam between a client and a server: bytes of HTTP, without saying how they travel.

The HTTP transport (`http.py`) satisfies it over sockets; the embedded server's in-process door satisfies it by shape,
without importing this module.
"""

from collections.abc import Mapping
from typing import Protocol


class Response(Protocol):
    """A whole answer."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...

    @property
    def warnings(self) -> list[str]:
        """Each Warning header, as sent."""


class Stream(Protocol):
    """An answer that is still coming: a watch. Close it when done; the rest is then never read."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """The next bytes, cut anywhere; empty when the server ended the stream. Raises OSError when it broke."""

    async def close(self) -> None: ...


class Transport(Protocol):
    """One server. Safe for concurrent use on one loop.

    Raises NotSent (an OSError, the server certainly did not see the request), another OSError or TimeoutError (it may
    have). Never retries, never follows redirects, never interprets a status.
    """

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response: ...

    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Stream:
        """GET `path` and answer as soon as the headers are in. `timeout` bounds that wait, not the stream."""

    async def close(self) -> None: ...


class NotSent(ConnectionError):
    """The request never reached the server, so a write did not happen."""
