"""The exceptions that a handler raises to end a pass: RequeueAfter, Wait and Terminal."""


class Outcome(Exception):
    """Base class of `RequeueAfter`, `Wait` and `Terminal`, which a handler raises to end a pass.

    Outcomes are raised, never returned. So every handler returns None, a type checker reports a handler that returns
    something else, and a helper function at any depth can end the pass.

    Guarantees: the fields and conditions set with `ctx.status` and `ctx.condition` are written, the retry back-off does
    not grow, and the log gets no traceback.

    Does not guarantee: that code after the raise runs. A broad `except Exception` in the handler catches outcomes too.
    """


class RequeueAfter(Outcome):
    """Raise this at the end of a successful pass to get another pass after `seconds`, even if nothing changes.

    In a reconcile handler the object becomes Ready. To end a pass early, raise `Wait("Reason", after=seconds)`. In a
    cleanup handler the finalizer stays, and cleanup runs again after `seconds`.

    Guarantees: a change that arrives earlier starts a pass earlier.

    Does not guarantee: an exact time. The pass starts when a worker is free.

    Raises: ValueError if `seconds` is negative.

    Example:
        raise fl.RequeueAfter(60)  # poll the external service every minute
    """

    def __init__(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"RequeueAfter needs a number of seconds that is not negative, got {seconds}")
        super().__init__(f"next pass in {seconds:g} s")
        self.seconds = seconds


class Wait(Outcome):
    """Raise this when something else must happen before the pass can continue.

    The Ready condition becomes False. Its reason is `reason` if that is a single word (`DatabaseStarting`); otherwise
    `reason` becomes the message. Without `after`, the next change of the object, of a child or of a watched object
    starts the next pass.

    Guarantees: no error is counted, and no Event is recorded.

    Does not guarantee: another pass, if `after` is not set and nothing that the controller watches changes.

    Example:
        raise fl.Wait("DatabaseStarting", "the StatefulSet has no ready replica", after=300)
    """

    def __init__(self, reason: str, message: str = "", *, after: float | None = None) -> None:
        super().__init__(message or reason)
        self.reason = reason
        self.after = after


class Terminal(Outcome):
    """Raise this when a retry cannot succeed until the object or something watched changes.

    The Ready condition becomes False with `reason` and `message`. The pass counts as an error, and a Warning Event is
    recorded.

    Guarantees: no retry and no back-off. A change, a resync or a restart of the operator starts the next pass.

    Example:
        raise fl.Terminal("HostTaken", "example.com belongs to another Website")
    """

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason
