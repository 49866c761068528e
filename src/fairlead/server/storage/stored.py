"""One object at one version, as it is kept: as it was written while it is in use, as JSON alone when it rests."""

from collections import deque
from typing import Any
from weakref import ref

import msgspec

from fairlead.server.golang.encoding import encode

Object = dict[str, Any]
# Objects in use take some seven times the memory of their JSON, and what was derived from them is in it. More than a
# busy operator goes round at once, and few beside those of a large cluster.
IN_USE = 2_000
_decode = msgspec.json.Decoder().decode


class Stored:
    """One object at one version, with what was derived from it (decoded managedFields, answers).

    Immutable, like its object. What rests is decoded again for whoever asks for it, to a dict of its own that is equal.
    """

    __slots__ = ("__weakref__", "_derived", "_encoded", "_object", "_recent", "respelled", "seen", "version")

    def __init__(self, obj: Object, version: int, seen: Any = None) -> None:
        self.version = version
        self.seen = seen  # the rules that the object is known to be in line with
        self.respelled = False  # it differs from how it is read, so that the next write is none without effect
        self._object: Object | None = obj
        self._encoded: bytes | None = None
        self._derived: dict[Any, Any] | None = None
        self._recent: Recent | None = None

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
        """The object as JSON, encoded at most once."""
        if self._encoded is None:
            self._encoded = encode(self._object)
        return self._encoded

    @property
    def derived(self) -> dict[Any, Any]:
        """What can be worked out again from the object, and is forgotten when it rests."""
        if self._derived is None:
            self._derived = {}
        return self._derived


class Recent:
    """The kept objects that were written or read last; whichever has been in longest rests when there are too many."""

    def __init__(self, most: int = IN_USE) -> None:
        self._most = most
        self._objects: deque[ref[Stored]] = deque()  # weakly: what was overwritten and forgotten is kept by nobody

    def add(self, stored: Stored) -> None:
        stored._recent = self  # noqa: SLF001 - the two are one concept
        self._objects.append(ref(stored))
        if len(self._objects) > self._most and (longest := self._objects.popleft()()) is not None:
            _rest(longest)


def _rest(stored: Stored) -> None:
    _ = stored.encoded
    stored._object = stored._derived = None  # noqa: SLF001
