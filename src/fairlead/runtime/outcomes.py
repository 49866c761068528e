"""What a reconcile may answer besides "done": look again after a while, wait for something, give up."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Return this to be called again after so many seconds, even when nothing happens. Not a failure."""

    seconds: float


class Wait(Exception):
    """Raise this when something has to happen first. The object is not Ready; no back-off grows, no error is counted.

    `reason` is the condition's reason when it is one word (`DatabaseStarting`), its message otherwise. Without `after`
    the next event wakes the object.
    """

    def __init__(self, reason: str, message: str = "", *, after: float | None = None) -> None:
        super().__init__(message or reason)
        self.reason = reason
        self.after = after


class Terminal(Exception):
    """Raise this when trying again is useless until the object changes. Not Ready, and not retried."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason
