"""The result of a pass: its Ready condition, its metric label, and when the key is reconciled again."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from fairlead.api.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    InternalError,
    Invalid,
    RequestEntityTooLarge,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    UnknownOutcome,
    UserError,
)
from fairlead.api.source_locations import is_fairlead, is_raised_by_fairlead, raise_location
from fairlead.runtime.handlers import HandlerError, HandlerTimeout
from fairlead.runtime.outcomes import RequeueAfter, Terminal, Wait
from fairlead.writes.decide import is_failed_test
from fairlead.writes.errors import ImmutableField, WriteError

# These are usually gone at the next attempt, so the condition reports them only when they happen twice in a row.
_TRANSIENT = (
    ConnectionError,
    TimeoutError,
    TooManyRequests,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    UnknownOutcome,
)
# Exceptions that mean a mistake in the code, as opposed to a failing environment. Go would panic.
_CODE_ERRORS = (
    HandlerError,
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    AssertionError,
    ArithmeticError,
    RecursionError,
)
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_MAX_MESSAGE = 1024
# The server rejects the same content again until something changes. A change of a watched object starts a pass; a
# change of a quota or of an admission policy does not, so the key is also retried slowly.
_RETRY_REJECTED_CONTENT_AFTER = 300.0


METRIC_LABELS = ("success", "error", "requeue", "requeue_after")
"""The values of the metric label `result`, as controller-runtime names them."""


class QueueAction(StrEnum):
    """The method by which the key of a pass is given back to the queue."""

    DONE = "done"
    RETRY = "retry"  # with back-off
    CONFLICT = "conflict"  # soon, without back-off


@dataclass(frozen=True, slots=True)
class PassResult:
    """The result of one pass. If `ready` is None, the Ready condition is not changed."""

    metric_label: str  # one of METRIC_LABELS
    action: QueueAction
    ready: bool | None = None
    reason: str = ""
    message: str = ""
    after: float | None = None
    error: Exception | None = None

    @property
    def is_failure(self) -> bool:
        return self.metric_label == "error"

    @property
    def is_transient(self) -> bool:
        """Whether the next attempt usually succeeds, as after a timeout or a refused connection."""
        return isinstance(self.error, _TRANSIENT)

    def no_later_than(self, after: float | None) -> "PassResult":
        """Return a copy of the result in which the next pass starts in at most `after` seconds."""
        candidates = [seconds for seconds in (self.after, after) if seconds is not None]
        return replace(self, after=min(candidates, default=None))


NOTHING_TO_REPORT = PassResult("success", QueueAction.DONE)
RECONCILED = PassResult("success", QueueAction.DONE, ready=True, reason="Reconciled")


def needs_traceback(error: BaseException) -> bool:
    """Return whether the error's message alone does not explain it."""
    return not isinstance(error, (WriteError, ApiError, Terminal, HandlerTimeout, UserError, *_TRANSIENT))


def is_code_error(error: BaseException) -> bool:
    """Return whether the error means a mistake in the operator's code."""
    return isinstance(error, _CODE_ERRORS)


def from_error(error: Exception) -> PassResult:
    """Return the result of a pass whose handler raised `error`."""
    match error:
        case RequeueAfter():
            return replace(RECONCILED, metric_label="requeue_after", after=error.seconds)
        case Wait():
            reason, message = _reason_and_message(error.reason, str(error), "Waiting")
            label = "success" if error.after is None else "requeue_after"
            return PassResult(label, QueueAction.DONE, False, reason, message, after=error.after)
        case Terminal():
            reason, message = _reason_and_message(error.reason, str(error), "Failed")
            return PassResult("error", QueueAction.DONE, False, reason, message, error=error)
        case WriteError(retryable=True) | Conflict() | AlreadyExists():
            return PassResult("requeue", QueueAction.CONFLICT, error=error)
        case ImmutableField() | ApiError() if _is_about_content(error):
            after = _RETRY_REJECTED_CONTENT_AFTER
            return PassResult("error", QueueAction.DONE, False, error.reason, _shorten(error), after, error)
        case WriteError():
            return PassResult("error", QueueAction.RETRY, False, error.reason, _shorten(error), error=error)
        case ApiError():
            reason = error.reason or "Refused"
            return PassResult("error", QueueAction.RETRY, False, reason, _shorten(error), error=error)
        case _:
            name = type(error).__name__
            return PassResult("error", QueueAction.RETRY, False, name, _describe(error), error=error)


def _is_about_content(error: Exception) -> bool:
    """Return whether the server rejected the content of a request, so that the same request would fail again."""
    if isinstance(error, Invalid):
        return not is_failed_test(error)  # A failed JSON patch test depends on the moment.
    return isinstance(error, (BadRequest, ImmutableField, RequestEntityTooLarge))


def _reason_and_message(reason: str, message: str, fallback: str) -> tuple[str, str]:
    """Return (reason, message) for a condition. A reason of several words becomes the message."""
    return (reason, "" if message == reason else message) if _REASON.fullmatch(reason) else (fallback, message)


def _describe(error: Exception) -> str:
    """Return the message of a condition and an Event for an error that is neither an outcome nor of a write.

    The text of an exception that fairlead does not know may contain a password, and may differ from try to try, so
    that each retry would write the status again. Only its type and its place are shown. The log has the text.
    """
    name = type(error).__name__
    is_known = isinstance(error, UserError) or is_fairlead(type(error).__module__) or is_raised_by_fairlead(error)
    if is_known:
        return _shorten(error) or name
    location = raise_location(error)
    return f"{name}{f' at {location}' if location else ''}: the operator's log has the details"


def _shorten(error: Exception) -> str:
    return str(error)[:_MAX_MESSAGE]
