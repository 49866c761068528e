"""One exchange with a server: what is tried again, what is unknown, what is raised.

Tried again, a few times, when the server says so and it is safe:
- 429 with Retry-After, any verb: the server refused before doing anything.
- 401, once, any verb: likewise, and the transport may hold a newer token by then.
- 5xx with Retry-After, and broken or refused connections: only reads (and dry runs, which change nothing).

Never retried: a write that may have happened. It raises `UnknownOutcome` when its connection broke or its time ran out
after it was sent, when the answer is 502, 503 or 504 or says that it ran out of time (a server gives up waiting, not
doing), when storage failed under it, and when a success is unreadable. A write that was certainly not sent raises
`NotSent`. A cancelled write raises CancelledError with an `UnknownOutcome` as its cause: see `may_have_happened`.
Any other refusal is the ApiError of its reason.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from fairlead.api.errors import ApiError, ServerTimeout, Timeout, UnknownOutcome
from fairlead.api.requests import HttpRequest
from fairlead.api.text import printable
from fairlead.api.world import World
from fairlead.client import statuses
from fairlead.client.credentials import CredentialsError
from fairlead.client.transport import NotSent, Response, Stream, Transport

T = TypeVar("T")

log = logging.getLogger("fairlead.client")

RequestObserver = Callable[[str, str, float], None]
"""Told of every request as it ends: method, status code (or `<error>`), seconds. Labels such as the host are bound by
whoever passes it."""

MAX_ATTEMPTS = (
    4  # enough for a rolling restart of one replica behind a balancer; beyond that the caller's back-off knows better
)
MAX_RETRY_AFTER = 10.0  # a server that asks for more is told to the caller, who can do something else meanwhile
RETRY_BASE = 0.05  # after a broken connection, doubled each time

_REASONS = {  # what a bare number means where something other than an API server answered
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What is asked of the server. `writes` is whether carrying it out changes anything."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str = "application/json"
    content_type: str = "application/json"
    body: bytes | None = None
    writes: bool = False


class Exchange:
    """Sends requests by the rules above. Safe for concurrent use on one loop."""

    def __init__(
        self, transport: Transport, world: World, *, user_agent: str, timeout: float, observe: RequestObserver | None
    ) -> None:
        self._transport = transport
        self._world = world
        self._user_agent = user_agent
        self._timeout = timeout
        self._observe = observe
        self._warned: set[str] = set()

    async def send(self, request: ApiRequest, decode: Callable[[bytes], T]) -> T:
        """The answer, decoded. One that `decode` cannot read is not a success."""
        response = await self._send_with_retries(request)
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            return decode(response.body)
        raise self._error_for(request, parse_error(response))

    async def _send_with_retries(self, request: ApiRequest) -> Response:
        """The answer, successful by its status."""
        attempt = 1
        while True:
            wait: float | None
            try:
                response = await self._send_once(request)
            except OSError as error:
                if request.writes or isinstance(error, TimeoutError | CredentialsError) or attempt >= MAX_ATTEMPTS:
                    raise
                wait = RETRY_BASE * 2**attempt * self._world.random.random()
            else:
                if 200 <= response.status < 300:
                    self._log_warnings(response)
                    return response
                failure = parse_error(response)
                wait = self._retry_delay(request, failure, attempt)
                if wait is None:
                    raise self._error_for(request, failure)
            attempt += 1
            await asyncio.sleep(wait)

    async def open_stream(self, request: ApiRequest) -> Stream:
        """An answer as it comes. Nothing is tried again: a watch has its own way back."""
        started = self._world.clock.monotonic()
        code = "<error>"
        try:
            stream = await self._transport.stream(self._http_request(request))
            code = str(stream.status)
        finally:
            self._report(request.method, code, started)
        if stream.status == 200:
            return stream
        try:
            async with asyncio.timeout(self._timeout):
                body = bytearray()
                while len(body) < 65536 and (chunk := await stream.read()):
                    body += chunk
        finally:
            await stream.close()
        raise parse_error(_ErrorResponse(stream.status, stream.headers, bytes(body)))

    async def _send_once(self, request: ApiRequest) -> Response:
        started = self._world.clock.monotonic()
        code = "<error>"
        try:
            response = await self._transport.request(self._http_request(request))
            code = str(response.status)
            return response
        except NotSent:
            raise
        except Exception as error:  # of any kind: only NotSent promises that nothing happened
            if request.writes:
                raise _unknown_outcome(request, str(error) or type(error).__name__) from error
            raise
        except asyncio.CancelledError as error:
            if request.writes:
                raise error from _unknown_outcome(request, "cancelled")
            raise
        finally:
            self._report(request.method, code, started)

    def _http_request(self, request: ApiRequest) -> HttpRequest:
        headers = {"Accept": request.accept, "User-Agent": self._user_agent}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return HttpRequest(request.method, request.path, request.query, headers, request.body, self._timeout)

    def _report(self, method: str, code: str, started: float) -> None:
        if self._observe is not None:
            self._observe(method, code, self._world.clock.monotonic() - started)

    def _retry_delay(self, request: ApiRequest, failure: ApiError, attempt: int) -> float | None:
        """Seconds after which to try again, or None."""
        if failure.code == 401 and attempt == 1:
            return 0.0
        asked = failure.retry_after
        if asked is None or asked > MAX_RETRY_AFTER or attempt >= MAX_ATTEMPTS:
            return None
        if failure.code == 429 or (failure.code >= 500 and not request.writes):
            return asked * (1 + self._world.random.random() / 4)  # those who were refused together come back apart
        return None

    def _error_for(self, request: ApiRequest, failure: ApiError) -> Exception:
        if not request.writes or not _may_have_happened(failure):
            return failure
        unknown = _unknown_outcome(request, failure.message)
        unknown.__cause__ = failure
        return unknown

    def _log_warnings(self, response: Response) -> None:
        for warning in response.warnings:
            if warning not in self._warned and len(self._warned) < 1000:  # each once; bounded against a chatty server
                self._warned.add(warning)
                log.warning("the server warns: %s", printable(warning))


@dataclass(frozen=True, slots=True)
class _ErrorResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


def parse_error(response: Response | _ErrorResponse) -> ApiError:
    """The error that an answer carries. One that is not a Status is quoted, shortened and made printable."""
    status = statuses.read(response.body)
    if status is None or status.get("kind") != "Status":
        status = {"code": response.status, "reason": _REASONS.get(response.status, ""), "message": _quote(response)}
    retry_after = response.headers.get("Retry-After", "")
    details = status.get("details") or {}
    if retry_after.isdecimal() and not details.get("retryAfterSeconds"):
        status = {**status, "details": {**details, "retryAfterSeconds": int(retry_after)}}
    return ApiError.of(status, response.status)


def _quote(response: Response | _ErrorResponse) -> str:
    if 300 <= response.status < 400:
        return (
            f"HTTP {response.status}: a redirect to {printable(response.headers.get('Location', 'nowhere'))}, which is "
            "not followed since credentials would go along: make that the server's address if it is the right one"
        )
    text = printable(response.body[:200].decode(errors="replace")).strip()
    return f"HTTP {response.status}, not from an API server: {text or 'no body'}"


def _may_have_happened(failure: ApiError) -> bool:
    if isinstance(failure, Timeout | ServerTimeout) or failure.code in {502, 503, 504}:
        return True
    # Storage errors come through bare; so do refusals such as an unknown field in an apply, which are final.
    stored_or_not = failure.message.startswith(("etcdserver:", "rpc error:", "context deadline exceeded"))
    return 200 <= failure.code < 300 or (failure.code == 500 and not failure.status.get("reason") and stored_or_not)


def _unknown_outcome(request: ApiRequest, why: str) -> UnknownOutcome:
    return UnknownOutcome(
        f"{request.method} {request.path}: the answer was lost ({why}), so it may or may not have happened"
    )
