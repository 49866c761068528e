"""The access log of a draft: the paths that a decision function read."""

from enum import Enum
from typing import Any

from fairlead.writes.errors import WriteError
from fairlead.writes.json_patch import Path


class Access(Enum):
    """What a decision function learned about a path by reading it, such as its value or its absence."""

    VALUE = "its value"
    ABSENT = "that it does not exist"
    PRESENT = "that a map or list exists, not its contents"
    LENGTH = "the number of items in a list, not the items"
    NON_EMPTY = "that a map or list is not empty"


# The address of the object and its uid. Every patch tests the uid, so these reads need no test of their own.
_IDENTITY: frozenset[Path] = frozenset(
    {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid")}
)


class AccessLog:
    """The object that a decision function reads (`base`, never changed), and every path that the function read."""

    def __init__(self, base: dict[str, Any]) -> None:
        self.base = base
        self.reads: set[tuple[Path, Access]] = set()
        self.closed = False  # The patch is complete: later reads would not be guarded.

    def record(self, path: Path, access: Access) -> None:
        if self.closed:
            raise WriteError("a part of a draft was read after its function returned: return a plain copy of it")
        if path not in _IDENTITY:
            self.reads.add((path, access))
