"""Transports that wrap another one: one sends writes only while the lease is held, one makes dry runs."""

import json
from dataclasses import replace
from functools import partial
from typing import Protocol

from fairlead.api import gojson
from fairlead.api.requests import HttpRequest
from fairlead.client.transport import NotSent, Response, Stream, Transport

_READS = frozenset({"GET", "HEAD"})


class NotLeading(NotSent):
    """A write was not sent, because this process may not hold its lease any more.

    The run is about to stop. The next leader reconciles every object.
    """


class Leadership(Protocol):
    """The method of a Lease that FencedTransport calls."""

    def seconds_left(self) -> float:
        """Return the seconds for which this process certainly holds the lease, or 0 or less if that is uncertain."""


class _WrappingTransport:
    """A base class of transports that wrap another transport. `close` does not close the wrapped one."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(self, request: HttpRequest) -> Response:
        return await self._inner.request(request)

    async def stream(self, request: HttpRequest) -> Stream:
        return await self._inner.stream(request)

    async def close(self) -> None: ...


class FencedTransport(_WrappingTransport):
    """Sends a write only while this process holds the lease, with a deadline before the lease ends.

    The transport below repeats the check at the last moment, when it has a connection and is about to write to it.

    Does not guarantee: that no write arrives after the lease has ended. The process may be suspended between that check
    and the send, and a request may be delayed on the network. The server then rejects writes that test what they read,
    and accepts forced applies.
    """

    def __init__(self, inner: Transport, leadership: Leadership) -> None:
        super().__init__(inner)
        self._leadership = leadership

    async def request(self, request: HttpRequest) -> Response:
        if request.method not in _READS:
            before_send = partial(self._check, request)
            seconds_left = self._check(request)
            timeout = seconds_left if request.timeout is None else min(request.timeout, seconds_left)
            request = replace(request, timeout=timeout, before_send=before_send)
        return await self._inner.request(request)

    def _check(self, request: HttpRequest) -> float:
        """Return the seconds that are left of the lease. Raises NotLeading if there are none."""
        seconds_left = self._leadership.seconds_left()
        if seconds_left <= 0:
            raise NotLeading(
                f"{request.method} {request.path} was not sent: this process may not hold the lease any more"
            )
        return seconds_left


class DryRunTransport(_WrappingTransport):
    """Adds dryRun=All to each write, so that the server validates the write and does not store it."""

    async def request(self, request: HttpRequest) -> Response:
        if request.method == "DELETE" and request.body:
            # The server reads the options of a DELETE from the body if it has one, and then ignores the query.
            request = replace(request, body=gojson.dumps({**json.loads(request.body), "dryRun": ["All"]}))
        elif request.method not in _READS:
            request = replace(request, query={**(request.query or {}), "dryRun": "All"})
        return await self._inner.request(request)
