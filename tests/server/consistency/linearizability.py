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
        """The values there may be after it, given the value before it; none where it cannot have happened then."""
        after = self._carried_out(state)
        if self.answer == "unknown":
            return {state, after if after is not NotImplemented else state}
        if self.answer == "ok":
            return {after} - {NotImplemented}
        refused = {
            "exists": state is not GONE,
            "missing": state is GONE,
            "conflict": state not in (GONE, self.expected),
        }
        return {state} if refused[self.answer] else set()

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
    """Return whether some order explains the answers. An unknown operation may take effect late or never."""
    ops = sorted(operations, key=lambda op: op.start)
    ends = [inf if op.answer == "unknown" else op.end for op in ops]
    needed = sum(1 << i for i, op in enumerate(ops) if op.answer != "unknown")
    stack, seen = [(0, GONE)], set()
    while stack:
        done, state = stack.pop()
        if done & needed == needed:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        open_ = [i for i in range(len(ops)) if not done >> i & 1]
        horizon = min(ends[i] for i in open_)
        for i in open_:
            if ops[i].start > horizon:
                break
            stack.extend((done | 1 << i, after) for after in ops[i].outcomes(state))
    return False
