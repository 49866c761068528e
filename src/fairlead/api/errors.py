"""The error responses of an API server, one exception class for each `reason` of a Status.

The HTTP code alone does not identify an error: AlreadyExists and Conflict are both 409, and an unknown field in an
apply is a 500 without a reason, which a retry does not fix.
"""

from typing import Any


class ApiError(Exception):
    """An API server rejected a request. `status` is the Status object of the response, `message` says what to change.

    The `reason` of the Status selects the subclass, such as NotFound. An unknown reason gives a plain ApiError.
    """

    reason = ""

    def __init__(self, status: dict[str, Any], code: int | None = None) -> None:
        super().__init__(status.get("message") or status.get("reason") or f"HTTP {code or status.get('code')}")
        self.status = status
        self.code = code or int(status.get("code") or 0)

    @property
    def message(self) -> str:
        return str(self.args[0])

    @property
    def details(self) -> dict[str, Any]:
        return self.status.get("details") or {}

    @property
    def causes(self) -> list[dict[str, Any]]:
        return self.details.get("causes") or []

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server asks the client to wait before a retry, or None if the server names no time."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if seconds else None

    @staticmethod
    def of(status: dict[str, Any], code: int | None = None) -> "ApiError":
        """Return the exception for a Status. Its reason selects the class: `NotFound` gives a NotFound."""
        return _BY_REASON.get(status.get("reason") or "", ApiError)(status, code)


class BadRequest(ApiError):
    """The server could not read the request (400), such as a malformed object or selector. Fix the request."""

    reason = "BadRequest"


class Unauthorized(ApiError):
    """The server did not accept the credentials (401). Renew the token or the client certificate."""

    reason = "Unauthorized"


class Forbidden(ApiError):
    """The user has no permission for the request (403). Grant the verb on the resource in a Role or ClusterRole."""

    reason = "Forbidden"


class NotFound(ApiError):
    """The object or the resource does not exist (404). Create the object, or check its name and namespace."""

    reason = "NotFound"


class MethodNotAllowed(ApiError):
    """The resource does not support the verb (405), such as a delete of a TokenReview. Use another verb."""

    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    """The server cannot send the response in the requested format (406). Request JSON."""

    reason = "NotAcceptable"


class AlreadyExists(ApiError):
    """A create failed because an object of that name exists already (409).

    Read the existing object, or use `ctx.apply`, which also accepts an existing object.
    """

    reason = "AlreadyExists"


class Conflict(ApiError):
    """A precondition of the write failed (409): read the object again and repeat the change.

    An apply without force raises Conflict when another field manager owns a field with another value. Its causes are
    FieldManagerConflict.
    """

    reason = "Conflict"


class Gone(ApiError):
    """The resource or the requested resourceVersion does not exist any more (410). List the objects again."""

    reason = "Gone"


class Expired(ApiError):
    """The resourceVersion or the continue token is older than the server's history (410). List the objects again."""

    reason = "Expired"


class Invalid(ApiError):
    """The server's validation rejected the object (422): fix the fields that `causes` names.

    If `causes` is empty, a `test` operation of a JSON patch failed: read the object again.
    """

    reason = "Invalid"


class RequestEntityTooLarge(ApiError):
    """The request is larger than the server accepts (413). Split the object."""

    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The server does not know the content type of the request (415). Send JSON, or another patch type."""

    reason = "UnsupportedMediaType"


class TooManyRequests(ApiError):
    """The server is overloaded, or a disruption budget does not allow the eviction now (429).

    Retry after `retry_after` seconds.
    """

    reason = "TooManyRequests"


class InternalError(ApiError):
    """The server failed (500). Retry with back-off; the message names the cause."""

    reason = "InternalError"


class ServerTimeout(ApiError):
    """The server could not complete the request in time (500). Retry. A write raises UnknownOutcome instead."""

    reason = "ServerTimeout"


class ServiceUnavailable(ApiError):
    """The server is not ready (503), such as during a restart. Retry with back-off."""

    reason = "ServiceUnavailable"


class Timeout(ApiError):
    """The request timed out on the server (504). Retry. A write raises UnknownOutcome instead."""

    reason = "Timeout"


_BY_REASON: dict[str, type[ApiError]] = {cls.reason: cls for cls in ApiError.__subclasses__()}


class UnknownOutcome(Exception):
    """A write was sent and its response did not arrive, so the server may or may not have carried out the write.

    Read the object from the server (not from the cache) before the next decision about it. If a handler raises this
    error, the next pass first reads the object from the server.
    """


def may_have_happened(error: BaseException) -> bool:
    """Return whether the server may have carried out a write that raised `error`.

    The result is True for `UnknownOutcome`, and for a CancelledError or TimeoutError with an `UnknownOutcome` as its
    cause. asyncio needs the types of these two errors unchanged, so they are not replaced by `UnknownOutcome`.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, UnknownOutcome):
        cause = cause.__cause__
    return cause is not None


class UserError(Exception):
    """The base class of errors that a person can fix.

    The message is one line that names the fix. The command line prints it without a traceback.
    """
