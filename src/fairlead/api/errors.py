"""The errors that a server answers, one class for each `reason` of a Status.

The HTTP code alone does not identify an error: AlreadyExists and Conflict are both 409, and an unknown field in an
apply is a 500 without a reason, which a retry does not fix.
"""

from typing import Any


class ApiError(Exception):
    """The server rejected a request. `status` is its whole Status object, and `message` says what to change.

    The class depends on the Status' `reason`. An unknown reason is a plain ApiError.
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
        """Seconds after which the server asks for a retry, or None."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if seconds else None

    @staticmethod
    def of(status: dict[str, Any], code: int | None = None) -> "ApiError":
        """Return the error for this Status, as an instance of the class for its reason."""
        return _BY_REASON.get(status.get("reason") or "", ApiError)(status, code)


class BadRequest(ApiError):
    """The server could not read the request (400), such as a malformed object or selector. Fix the request."""

    reason = "BadRequest"


class Unauthorized(ApiError):
    """The server did not accept the credentials (401). Renew the token or the client certificate."""

    reason = "Unauthorized"


class Forbidden(ApiError):
    """The user may not do this (403). Grant the verb on the resource in a Role or ClusterRole."""

    reason = "Forbidden"


class NotFound(ApiError):
    """The object or the resource does not exist (404). Create it, or check its name and namespace."""

    reason = "NotFound"


class MethodNotAllowed(ApiError):
    """The resource does not support the verb (405), such as a delete of a TokenReview. Use another verb."""

    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    """The server cannot answer in the requested format (406). Ask for JSON."""

    reason = "NotAcceptable"


class AlreadyExists(ApiError):
    """An object of that name exists already (409). Read it, or use `ctx.apply`, which accepts that."""

    reason = "AlreadyExists"


class Conflict(ApiError):
    """A precondition failed (409): read the object again and repeat the change.

    An apply without force raises it when another field manager owns a field. Its causes are FieldManagerConflict.
    """

    reason = "Conflict"


class Gone(ApiError):
    """The resource or its version does not exist any more (410). For a watch or a list, list again."""

    reason = "Gone"


class Expired(ApiError):
    """The resourceVersion or the continue token is older than the server's history (410). List again."""

    reason = "Expired"


class Invalid(ApiError):
    """Validation failed (422): fix the fields that `causes` names.

    Without causes, a `test` operation of a JSON patch failed: read the object again.
    """

    reason = "Invalid"


class RequestEntityTooLarge(ApiError):
    """The request is larger than the server accepts (413). Split the object."""

    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The server does not know the content type of the request (415). Send JSON, or another patch type."""

    reason = "UnsupportedMediaType"


class TooManyRequests(ApiError):
    """The server is overloaded (429). Retry after `retry_after` seconds. Eviction also answers this."""

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
    """A write was sent, and its answer was lost, cancelled or timed out: it may or may not have happened.

    Read the object live before you decide anything else about it. If a handler raises this error, the next pass reads
    the object live first.
    """


def may_have_happened(error: BaseException) -> bool:
    """Whether a write that ended in `error` may have been carried out although it was not acknowledged.

    True for `UnknownOutcome`, and for a cancellation or timeout that has one as its cause: asyncio needs to see those
    two as they are.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, UnknownOutcome):
        cause = cause.__cause__
    return cause is not None


class UserError(Exception):
    """An error that a person can fix. The message is one line that says how, and no traceback is shown."""
