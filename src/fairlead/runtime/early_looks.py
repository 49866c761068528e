"""Which changes cut the wait after an error, so that a person who fixed the cause sees the effect at once."""

from collections import deque

from fairlead.queue import Queue
from fairlead.runtime.predicates import generation_changed
from fairlead.runtime.services import Key
from fairlead.runtime.wakes import Wake

# The changes of one pass that are kept until the pass has ended. More than a few come only from a program that edits
# without end, and the newest of them suffice.
_MAX_CHANGES = 64


class EarlyLooks:
    """Cuts the wait of a key after an error when something changed that may have been the cause.

    Guarantees: a changed generation, label, annotation or deletionTimestamp of the object, and a change of a child or
    of a mapped object, cut the wait, also if they arrive while the failing pass still runs. A change that this process
    made does not: while a write of the same kind is unanswered, the decision waits for its answer. `Queue.cut_backoff`
    limits how often a wait is cut.

    Does not guarantee: that the event of a write whose answer was lost is recognized as our own.
    """

    def __init__(self, queue: Queue[Key]) -> None:
        self._queue = queue
        self._during_pass: dict[Key, deque[Wake]] = {}

    def on_change(self, key: Key, wake: Wake) -> None:
        """Consider a change that was added to the queue."""
        if self._queue.is_in_progress(key):
            self._during_pass.setdefault(key, deque(maxlen=_MAX_CHANGES)).append(wake)
        elif self._queue.can_cut_backoff(key):
            self._decide(key, wake)

    def on_error(self, key: Key) -> None:
        """Consider the changes that arrived during a pass that failed."""
        for wake in self._during_pass.pop(key, ()):
            self._decide(key, wake)

    def forget(self, key: Key) -> None:
        """Forget the changes that arrived during a pass that did not fail: the next pass sees them anyway."""
        self._during_pass.pop(key, None)

    def _decide(self, key: Key, wake: Wake) -> None:
        assert wake.change is not None

        def decide() -> None:
            if self._queue.can_cut_backoff(key) and not wake.is_own and is_possible_remedy(wake):
                self._queue.cut_backoff(key)

        wake.change.call_when_answered(decide)


def is_possible_remedy(wake: Wake) -> bool:
    """Return whether the change may have removed the cause of an error. A changed status of the object is not one."""
    change = wake.change
    if change is None or change.initial:
        return False
    if wake.source != "primary" or change.old is None or change.new is None:
        return True
    return bool(wake.changed_metadata()) or generation_changed(change.old.object(), change.new.object())
