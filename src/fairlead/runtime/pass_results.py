"""What comes of a pass: the word for the condition, and when the key is looked at again."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

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
)
from fairlead.runtime.handlers import HandlerTimeout
from fairlead.runtime.outcomes import RequeueAfter, Terminal, Wait
from fairlead.writes.decide import is_failed_test
from fairlead.writes.errors import ImmutableField, WriteError

# Gone by the next try as a rule, and no reason to call an object broken: reported only when it happens again.
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
_MISTAKES = (TypeError, AttributeError, NameError, LookupError, AssertionError, ArithmeticError, RecursionError)
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_LONGEST = 1024
# Sent again as it is, it is refused again, until something changes: what is watched wakes the key, while a quota, an
# admission policy or another version of the operator does not.
_REFUSED_AGAIN_AFTER = 300.0


RESULTS = ("success", "error", "requeue", "requeue_after")
"""What controller-runtime calls the outcomes."""


class QueueAction(StrEnum):
    """How the key goes back to the queue."""

    DONE = "done"
    RETRY = "retry"  # after its back-off
    CONFLICT = "conflict"  # in a moment


@dataclass(frozen=True, slots=True)
class PassResult:
    """Of one pass. `ready` is None where nothing is known to have changed: the condition then stays as it is."""

    metric_label: str  # one of RESULTS
    next: QueueAction
    ready: bool | None = None
    reason: str = ""
    message: str = ""
    after: float | None = None
    error: Exception | None = None

    @property
    def failed(self) -> bool:
        return self.metric_label == "error"

    @property
    def transient(self) -> bool:
        return isinstance(self.error, _TRANSIENT)

    @property
    def unexpected(self) -> bool:
        """Something that only a stack trace can explain."""
        known = (WriteError, ApiError, Terminal, HandlerTimeout, *_TRANSIENT)
        return self.error is not None and not isinstance(self.error, known)

    @property
    def mistake(self) -> bool:
        """A mistake in the code: what Go would panic on."""
        return isinstance(self.error, _MISTAKES)

    def by(self, after: float | None) -> "PassResult":
        """The same, with a look in `after` seconds at the latest."""
        sooner = [seconds for seconds in (self.after, after) if seconds is not None]
        return replace(self, after=min(sooner, default=None))


NOTHING_TO_REPORT = PassResult("success", QueueAction.DONE)


def from_return_value(result: Any, name: str) -> PassResult:
    """The verdict on a function that returned."""
    if result is None:
        return PassResult("success", QueueAction.DONE, ready=True, reason="Reconciled")
    if isinstance(result, RequeueAfter):
        return PassResult("requeue_after", QueueAction.DONE, ready=True, reason="Reconciled", after=result.seconds)
    raise TypeError(
        f"{name} returned {type(result).__name__}: return nothing, or fl.RequeueAfter(seconds) to be called again"
    )


def from_error(error: Exception) -> PassResult:
    """The verdict on what a pass raised."""
    match error:
        case Wait():
            reason, message = _words(error.reason, str(error), "Waiting")
            word = "success" if error.after is None else "requeue_after"
            return PassResult(word, QueueAction.DONE, False, reason, message, after=error.after)
        case Terminal():
            reason, message = _words(error.reason, str(error), "Failed")
            return PassResult("error", QueueAction.DONE, False, reason, message, error=error)
        case WriteError(retryable=True) | Conflict() | AlreadyExists():
            return PassResult("requeue", QueueAction.CONFLICT, error=error)
        case ImmutableField() | ApiError() if _for_its_content(error):
            reason = error.reason
            return PassResult(
                "error", QueueAction.DONE, False, reason, _short(error), after=_REFUSED_AGAIN_AFTER, error=error
            )
        case WriteError():
            return PassResult("error", QueueAction.RETRY, False, error.reason, _short(error), error=error)
        case ApiError():
            return PassResult("error", QueueAction.RETRY, False, error.reason or "Refused", _short(error), error=error)
        case _:
            name = type(error).__name__
            return PassResult("error", QueueAction.RETRY, False, name, _short(error) or name, error=error)


def _for_its_content(error: Exception) -> bool:
    """Whether the server refused what it was sent, not the moment. A guard that failed is about the moment."""
    if isinstance(error, Invalid):
        return not is_failed_test(error)
    return isinstance(error, (BadRequest, ImmutableField, RequestEntityTooLarge))


def _words(reason: str, message: str, fallback: str) -> tuple[str, str]:
    """A condition's reason is one word; a sentence given as one becomes its message."""
    return (reason, "" if message == reason else message) if _REASON.fullmatch(reason) else (fallback, message)


def _short(error: Exception) -> str:
    return str(error)[:_LONGEST]
