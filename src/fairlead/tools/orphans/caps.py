"""The cap: the number of objects that one run may delete."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cap:
    """The largest number of objects that a run may delete, or a percentage of the objects that a rule selects.

    A run that would delete more deletes nothing.
    """

    count: int | None = None
    percent: int | None = None
    at_least: int = 0  # The least that a percentage allows, for small sets.

    @classmethod
    def default(cls) -> "Cap":
        # A fifth is more than a cluster leaves behind in a bad week, and far less than a mistake would delete. Ten
        # objects of a small fleet can be read one by one.
        return cls(percent=20, at_least=10)

    @classmethod
    def parse(cls, text: str) -> "Cap":
        """Parse a cap such as `25` or `5%`. Raises ValueError."""
        match = re.fullmatch(r"([0-9]{1,9})(%?)", text.strip())
        if not match or (match[2] and int(match[1]) > 100):
            raise ValueError(f"{text!r} is not a cap: write a number of objects such as 25, or a percentage such as 5%")
        return cls(percent=int(match[1])) if match[2] else cls(count=int(match[1]))

    def allows(self, selected: int) -> int:
        """Return the number of objects that a run may delete if the rule selects `selected` objects."""
        if self.count is not None:
            return self.count
        return max(self.at_least, selected * (self.percent or 0) // 100)

    def __str__(self) -> str:
        if self.count is not None:
            return str(self.count)
        return f"{self.percent}%" + (f", at least {self.at_least}" if self.at_least else "")
