"""A linearizability checker for one key: is there an order of the operations that explains what clients saw?

The search is that of Wing and Gong: take any operation that may come first, and continue with the rest. Each pair of
completed operations and resulting value is tried once. Values are unique, so a value identifies its write.
"""

from dataclasses import dataclass
from math import inf

GONE = None


@dataclass(frozen=True)
class Operation:
    """One request: `verb` is get, create, put, cas or delete; `answer` is ok, exists, conflict, missing or unknown."""

    verb: str
    start: float
    end: float
    answer: str
    value: str | None = None  # what was written, or what was read
    expected: str | None = None  # what a cas replaces

    def outcomes(self, state):
        """Return the possible values after the operation, given the value before it.

        It is empty if none is possible.
        """
        after = self._carried_out(state)
        if self.answer == "unknown":
            return {state, after if after is not NotImplemented else state}
        if self.answer == "ok":
            return {after} - {NotImplemented}
        rejection = {
            "exists": state is not GONE,
            "missing": state is GONE,
            "conflict": state not in (GONE, self.expected),
        }
        return {state} if rejection[self.answer] else set()

    def _carried_out(self, state):
        match self.verb:
            case "get":
                return state if state == self.value else NotImplemented
            case "create":
                return self.value if state is GONE else NotImplemented
            case "put":
                return self.value if state is not GONE else NotImplemented
            case "cas":
                return self.value if state == self.expected else NotImplemented
            case "delete":
                return GONE if state is not GONE else NotImplemented


def explainable(operations):
    """Return whether some order of the operations explains the answers. An unknown one may happen late or never."""
    ops = sorted(operations, key=lambda op: op.start)
    ends = [inf if op.answer == "unknown" else op.end for op in ops]
    needed = sum(1 << i for i, op in enumerate(ops) if op.answer != "unknown")
    stack, visited_states = [(0, GONE)], set()
    while stack:
        completed, state = stack.pop()
        if completed & needed == needed:
            return True
        if (completed, state) in visited_states:
            continue
        visited_states.add((completed, state))
        open_ = [i for i in range(len(ops)) if not completed >> i & 1]
        horizon = min(ends[i] for i in open_)
        for i in open_:
            if ops[i].start > horizon:
                break
            stack.extend((completed | 1 << i, after) for after in ops[i].outcomes(state))
    return False
