"""What each request of an operator passes on its way out: the lease, and dry run."""

import json
from dataclasses import replace
from typing import Protocol

from fairlead.api import gojson
from fairlead.api.requests import HttpRequest
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

    async def request(self, request: HttpRequest) -> Response:
        return await self._inner.request(request)

    async def stream(self, request: HttpRequest) -> Stream:
        return await self._inner.stream(request)

    async def close(self) -> None: ...


class Fenced(_Around):
    """Sends a write only while the lease is held, with a deadline that ends before the lease does.

    A bound, not a proof: a process frozen between this check and the send, or a request already on the wire, may still
    land later. Writes that test what they read are then refused by the server; forced applies are not.
    """

    def __init__(self, inner: Transport, lead: Lead) -> None:
        super().__init__(inner)
        self._lead = lead

    async def request(self, request: HttpRequest) -> Response:
        if request.method not in _READS:
            left = self._lead.left()
            if left <= 0:
                raise NotLeading(f"{request.method} {request.path} was not sent: the lease is not surely held")
            request = replace(request, timeout=left if request.timeout is None else min(request.timeout, left))
        return await self._inner.request(request)


class DryRun(_Around):
    """Asks the server to check each write and store none."""

    async def request(self, request: HttpRequest) -> Response:
        if request.method == "DELETE" and request.body:
            # The server reads the options of a DELETE from the body if it has one, and then ignores the query.
            request = replace(request, body=gojson.dumps({**json.loads(request.body), "dryRun": ["All"]}))
        elif request.method not in _READS:
            request = replace(request, query={**(request.query or {}), "dryRun": "All"})
        return await self._inner.request(request)
