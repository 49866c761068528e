"""What each request of an operator passes on its way out: the lease, and dry run."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from fairlead.api import gojson
from fairlead.client.transport import NotSent, Response, Stream, Transport

_READS = frozenset({"GET", "HEAD"})


class NotLeading(NotSent):
    """A write was not sent, because this process cannot be sure to hold its lease any more."""


class Lead(Protocol):
    """For how long this process leads."""

    def left(self) -> float:
        """Seconds for which the lease is surely held; not above 0 when it may not be."""


class _Around:
    """A transport around another one, which stays its maker's to close."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(self, method: str, path: str, **rest: Any) -> Response:
        return await self._inner.request(method, path, **rest)

    async def stream(self, path: str, **rest: Any) -> Stream:
        return await self._inner.stream(path, **rest)

    async def close(self) -> None: ...


class Fenced(_Around):
    """Sends a write only while the lease is held, with a deadline that ends before the lease does.

    A bound, not a proof: a process frozen between this check and the send, or a request already on the wire, may still
    land later. Writes that test what they read are then refused by the server; forced applies are not.
    """

    def __init__(self, inner: Transport, lead: Lead) -> None:
        super().__init__(inner)
        self._lead = lead

    async def request(self, method: str, path: str, *, timeout: float | None = None, **rest: Any) -> Response:
        if method not in _READS:
            left = self._lead.left()
            if left <= 0:
                raise NotLeading(f"{method} {path} was not sent: the lease is not surely held")
            timeout = left if timeout is None else min(timeout, left)
        return await self._inner.request(method, path, timeout=timeout, **rest)


class DryRun(_Around):
    """Asks the server to check each write and store none."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        **rest: Any,
    ) -> Response:
        if method == "DELETE" and body:  # its options are read from the body, and then from nowhere else
            body = gojson.dumps({**json.loads(body), "dryRun": ["All"]})
        elif method not in _READS:
            query = {**(query or {}), "dryRun": "All"}
        return await self._inner.request(method, path, query=query, body=body, **rest)
