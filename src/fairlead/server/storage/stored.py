"""One stored object at one version. Recently used objects stay decoded; all others are kept as JSON only."""

from collections import deque
from typing import Any
from weakref import ref

import msgspec

from fairlead.server.golang.encoding import encode

Object = dict[str, Any]
# How many objects stay decoded. A decoded object and the values derived from it take about seven times the memory of
# its JSON. This is more than a busy operator reads at the same time, and few compared to a large cluster.
MAX_DECODED = 2_000
_decode = msgspec.json.Decoder().decode


class Stored:
    """One object at one version, with values derived from it, such as decoded managed fields and encoded responses.

    Immutable, like its object. `object` decodes the JSON again if necessary: the new dict is equal to the old one, but
    not identical.

    `normalized_for` is the Resource with which the object has been read: pruned, defaulted and converted to its
    version. `bytes_differ` says that a real server's stored bytes differ from the encoding of this object, so that the
    next write is not a no-op (see server.write.change_detection).
    """

    __slots__ = (
        "__weakref__",
        "_derived",
        "_encoded",
        "_object",
        "_recent",
        "bytes_differ",
        "normalized_for",
        "version",
    )

    def __init__(self, obj: Object, version: int, normalized_for: Any = None) -> None:
        self.version = version
        self.normalized_for = normalized_for
        self.bytes_differ = False
        self._object: Object | None = obj
        self._encoded: bytes | None = None
        self._derived: dict[Any, Any] | None = None
        self._recent: RecentlyUsed | None = None

    @property
    def object(self) -> Object:
        obj = self._object
        if obj is None:
            assert self._encoded is not None
            assert self._recent is not None
            obj = self._object = _decode(self._encoded)
            self._recent.add(self)
        return obj

    @property
    def encoded(self) -> bytes:
        """The object as JSON bytes, encoded at most once."""
        if self._encoded is None:
            self._encoded = encode(self._object)
        return self._encoded

    @property
    def derived(self) -> dict[Any, Any]:
        """A cache for values derived from the object. It is cleared when only the JSON of the object is kept."""
        if self._derived is None:
            self._derived = {}
        return self._derived


class RecentlyUsed:
    """The objects that are kept decoded. If there are too many, the oldest one is kept as JSON only."""

    def __init__(self, limit: int = MAX_DECODED) -> None:
        self._limit = limit
        self._objects: deque[ref[Stored]] = deque()  # weak references: overwritten objects can be freed

    def add(self, stored: Stored) -> None:
        stored._recent = self  # noqa: SLF001 - both classes implement one concept
        self._objects.append(ref(stored))
        if len(self._objects) > self._limit and (oldest := self._objects.popleft()()) is not None:
            _drop_decoded(oldest)


def _drop_decoded(stored: Stored) -> None:
    _ = stored.encoded
    stored._object = stored._derived = None  # noqa: SLF001
