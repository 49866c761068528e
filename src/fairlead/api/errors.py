"""What a server answers when it refuses, told apart by `reason`, never by the number alone.

AlreadyExists and Conflict are both 409; an unknown field in an apply is a 500 with no reason and never transient.
"""

from typing import Any


class ApiError(Exception):
    """A request that the server answered with a failure. `status` is its Status object, whole."""

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
        """Seconds after which the server asks to be tried again, if it does."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if seconds else None

    @staticmethod
    def of(status: dict[str, Any], code: int | None = None) -> "ApiError":
        """The error for this Status, of the class for its reason."""
        return _BY_REASON.get(status.get("reason") or "", ApiError)(status, code)


class BadRequest(ApiError):
    reason = "BadRequest"


class Unauthorized(ApiError):
    reason = "Unauthorized"


class Forbidden(ApiError):
    reason = "Forbidden"


class NotFound(ApiError):
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    reason = "NotAcceptable"


class AlreadyExists(ApiError):
    reason = "AlreadyExists"


class Conflict(ApiError):
    """A precondition failed, or (with FieldManagerConflict causes) an unforced apply met another owner."""

    reason = "Conflict"


class Gone(ApiError):
    reason = "Gone"


class Expired(ApiError):
    """The resourceVersion or continue token is older than the server's history: list again."""

    reason = "Expired"


class Invalid(ApiError):
    """Validation failed (causes say where), or a JSON patch `test` did (no causes)."""

    reason = "Invalid"


class RequestEntityTooLarge(ApiError):
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    reason = "UnsupportedMediaType"


class TooManyRequests(ApiError):
    reason = "TooManyRequests"


class InternalError(ApiError):
    reason = "InternalError"


class ServerTimeout(ApiError):
    reason = "ServerTimeout"


class ServiceUnavailable(ApiError):
    reason = "ServiceUnavailable"


class Timeout(ApiError):
    reason = "Timeout"


_BY_REASON: dict[str, type[ApiError]] = {cls.reason: cls for cls in ApiError.__subclasses__()}


class UnknownOutcome(Exception):
    """A write was sent and its answer was lost, cancelled or timed out: it may or may not have happened.

    Read the object live before deciding anything else about it.
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
    """Something that the person at the keyboard can put right. The message is one line and says how."""
