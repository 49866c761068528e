"""Send API requests, retry the failures that are safe to retry, and raise an error for the others.

Retried a few times, because a retry is safe:
- 429 with Retry-After, any verb: the server rejected the request before doing anything.
- 401, once, any verb: the same, and the transport may have a newer token by then.
- 5xx with Retry-After, and broken or refused connections: only reads and dry runs.

Never retried: a write that may have happened. It raises `UnknownOutcome` in these cases:
- the connection broke or the timeout expired after the write was sent
- the answer is 502, 503 or 504, or a timeout (the server stops waiting for the write, but may still carry it out)
- the storage of the server failed during the write
- the answer is a success that cannot be parsed

A write that was certainly not sent raises `NotSent`. A cancelled write raises CancelledError with an `UnknownOutcome`
as its cause, see `may_have_happened`. Any other error response raises the ApiError of its reason.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from fairlead.api.errors import ApiError, ServerTimeout, Timeout, UnknownOutcome
from fairlead.api.requests import HttpRequest
from fairlead.api.text import printable
from fairlead.api.world import World
from fairlead.client import statuses
from fairlead.client.answers import SUCCESS
from fairlead.client.credentials import CredentialsError
from fairlead.client.transport import NotSent, Response, Stream, Transport, UnusableAnswer

T = TypeVar("T")

log = logging.getLogger("fairlead.client")

RequestObserver = Callable[[str, str, str, float], None]
"""Called after every request with method, path, status code (or `<error>`) and seconds."""

# Enough for a rolling restart of one replica behind a load balancer. After that, the caller's back-off takes over.
MAX_ATTEMPTS = 4
MAX_RETRY_AFTER = 10.0  # seconds; a longer Retry-After is raised, so that the caller can do something else
RETRY_BASE = 0.05  # seconds after a broken connection, doubled each time

_REASONS = {  # the reason of a status code, if something other than an API server answered
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    # Not 404: the page of a proxy does not mean that an object is absent.
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
    """A request to the API server. `writes` is True if the request may change an object."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str = "application/json"
    content_type: str = "application/json"
    body: bytes | None = None
    writes: bool = False


class Exchange:
    """Sends requests by the rules in this module's docstring. Safe for concurrent use on one event loop."""

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
        """Send the request and return `decode(body)` of the response. Raises if `decode` rejects the body."""
        return (await self.send_for_status(request, decode))[1]

    async def send_for_status(self, request: ApiRequest, decode: Callable[[bytes], T]) -> tuple[int, T]:
        """Send the request like `send`. Return the status code and `decode(body)` of the response."""
        response = await self._send_with_retries(request)
        try:
            return response.status, decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            failure = self._build_error(request, _build_unexpected_error(request, response, error))
        raise failure

    async def _send_with_retries(self, request: ApiRequest) -> Response:
        """Send the request until a response has a 2xx status, and return that response."""
        attempt = 1
        while True:
            wait: float | None
            try:
                response = await self._send_once(request)
            except OSError as error:
                is_lasting = isinstance(error, TimeoutError | CredentialsError | UnusableAnswer)
                if request.writes or is_lasting or attempt >= MAX_ATTEMPTS:
                    raise
                wait = RETRY_BASE * 2**attempt * self._world.random.random()
            else:
                if response.status in SUCCESS:
                    self._log_warnings(response)
                    return response
                failure = parse_error(response)
                wait = self._retry_delay(request, failure, attempt)
                if wait is None:
                    raise self._build_error(request, failure)
            attempt += 1
            await asyncio.sleep(wait)

    async def open_stream(self, request: ApiRequest) -> Stream:
        """Open the response stream of a watch. A failure is not retried here: the reflector retries."""
        started = self._world.clock.monotonic()
        code = "<error>"
        try:
            stream = await self._transport.stream(self._build_http_request(request))
            code = str(stream.status)
        finally:
            self._report(request, code, started)
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
            response = await self._transport.request(self._build_http_request(request))
            code = str(response.status)
            return response
        except NotSent:
            raise
        except Exception as error:  # any error: only NotSent guarantees that nothing happened
            if request.writes:
                raise _build_unknown_outcome(request, str(error) or type(error).__name__) from error
            raise
        except asyncio.CancelledError as error:
            if request.writes:
                raise error from _build_unknown_outcome(request, "cancelled")
            raise
        finally:
            self._report(request, code, started)

    def _build_http_request(self, request: ApiRequest) -> HttpRequest:
        headers = {"Accept": request.accept, "User-Agent": self._user_agent}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return HttpRequest(request.method, request.path, request.query, headers, request.body, self._timeout)

    def _report(self, request: ApiRequest, code: str, started: float) -> None:
        if self._observe is not None:
            self._observe(request.method, request.path, code, self._world.clock.monotonic() - started)

    def _retry_delay(self, request: ApiRequest, failure: ApiError, attempt: int) -> float | None:
        """Return the seconds to wait before the request is sent again, or None if it must not be sent again."""
        if failure.code == 401 and attempt == 1:
            return 0.0
        retry_after = failure.retry_after
        if retry_after is None or retry_after > MAX_RETRY_AFTER or attempt >= MAX_ATTEMPTS:
            return None
        if failure.code == 429 or (failure.code >= 500 and not request.writes):
            return retry_after * (
                1 + self._world.random.random() / 4
            )  # jitter spreads clients that were rejected together
        return None

    def _build_error(self, request: ApiRequest, failure: ApiError) -> Exception:
        if not request.writes or not _may_have_happened(failure):
            return failure
        unknown = _build_unknown_outcome(request, failure.message)
        unknown.__cause__ = failure
        return unknown

    def _log_warnings(self, response: Response) -> None:
        for warning in response.warnings:
            if warning not in self._warned and len(self._warned) < 1000:  # log each once; the set is bounded
                self._warned.add(warning)
                log.warning("the server warns: %s", printable(warning))


@dataclass(frozen=True, slots=True)
class _ErrorResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


def parse_error(response: Response | _ErrorResponse) -> ApiError:
    """Return the ApiError of an error response. If the body is not a Status, the message quotes its beginning."""
    status = statuses.read(response.body)
    is_success = 200 <= response.status < 300  # The reason of a Status in a success, such as NotFound, means nothing.
    if status is None or status.get("kind") != "Status" or is_success:
        reason = _REASONS.get(response.status, "")
        if response.body.strip() == b"404 page not found":  # the answer of an API server to a path that it lacks
            reason = "NotFound"
        status = {"code": response.status, "reason": reason, "message": _quote(response)}
    retry_after = response.headers.get("Retry-After", "")
    details = status.get("details") or {}
    if retry_after.isdecimal() and not details.get("retryAfterSeconds"):
        status = {**status, "details": {**details, "retryAfterSeconds": int(retry_after)}}
    return ApiError.of(status, response.status)


def _build_unexpected_error(request: ApiRequest, response: Response, cause: Exception) -> ApiError:
    """Return the error for a success that is not the requested object or list."""
    is_secret = "/secrets" in request.path  # A broken answer may still contain the values.
    body_text = "(not shown)" if is_secret else printable(response.body[:200].decode(errors="replace")).strip()
    message = (
        f"{request.method} {request.path}: HTTP {response.status}, and the answer is not what was requested ({cause}): "
        f"check the server's address and the proxies on the way; it starts with: {body_text or '(no body)'}"
    )
    return ApiError({"code": response.status, "message": message}, response.status)


def _quote(response: Response | _ErrorResponse) -> str:
    if 300 <= response.status < 400:
        return (
            f"HTTP {response.status}: a redirect to {printable(response.headers.get('Location', 'nowhere'))}, which is "
            "not followed because it would receive the credentials: use it as the server's address if it is right"
        )
    body_text = printable(response.body[:200].decode(errors="replace")).strip()
    return f"HTTP {response.status}, not from an API server: {body_text or 'no body'}"


def _may_have_happened(failure: ApiError) -> bool:
    if isinstance(failure, Timeout | ServerTimeout) or failure.code in {502, 503, 504}:
        return True
    # Storage errors have no reason. Final errors, such as an unknown field in an apply, have none either.
    is_storage_error = failure.message.startswith(("etcdserver:", "rpc error:", "context deadline exceeded"))
    return 200 <= failure.code < 300 or (failure.code == 500 and not failure.status.get("reason") and is_storage_error)


def _build_unknown_outcome(request: ApiRequest, cause: str) -> UnknownOutcome:
    return UnknownOutcome(
        f"{request.method} {request.path}: the answer was lost ({cause}), so it may or may not have happened"
    )
