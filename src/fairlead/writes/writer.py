"""Who writes: a client, a field manager, and what this process remembers of its own writes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace

from fairlead.api.errors import NotFound
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object, as_integer, is_removed
from fairlead.api.text import refuse_text
from fairlead.api.world import World
from fairlead.client.client import Client
from fairlead.writes.elision import our_entry
from fairlead.writes.errors import ObjectDeleted, ObjectReplaced
from fairlead.writes.seen import Nothing, Seen

# What a server calls the kind of an object of which only metadata was asked for.
METADATA_ONLY = "PartialObjectMetadata"

Key = tuple[str, str, str | None, str]

# Names remembered, so that objects which others deleted do not pile up. One forgotten costs what a restart does:
# nothing, or one request where the server stores something else than was sent; without a local view three, to find it.
KEPT = 100_000


@dataclass(frozen=True, slots=True)
class Memo:
    """What came of the last write to a name: which object it was, and what the payload became on it."""

    uid: str
    resource_version: str = ""
    payload: bytes = b""  # digest of what was sent
    outcome: bytes = b""  # digest of what our fields were in the answer, as the server normalised them


class Turns:
    """Writes to one object go one after another, writes to different objects side by side."""

    def __init__(self) -> None:
        self._locks: dict[Key, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, key: Key) -> AsyncIterator[None]:
        lock, waiting = self._locks.get(key) or (asyncio.Lock(), 0)
        self._locks[key] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._locks.pop(key)
            if waiting > 1:
                self._locks[key] = lock, waiting - 1


@dataclass(frozen=True)
class Writer:
    """What every discipline needs. One a process; `named` gives another field manager that shares its memory.

    Two Writers of one process on one server would not take turns, and would not know each other's writes.
    """

    client: Client
    world: World
    manager: str  # the field manager
    seen: Seen = field(default_factory=Nothing)
    turns: Turns = field(default_factory=Turns)
    memos: dict[Key, dict[tuple[str, str], Memo]] = field(default_factory=dict)
    formerly: tuple[str, ...] = ()  # field managers whose applies count as ours, and become ours at the next apply

    def __post_init__(self) -> None:
        refuse_special(self.manager)
        refuse_text("formerly", self.formerly)

    def named(self, manager: str) -> "Writer":
        return replace(self, manager=manager)

    def applied(self, obj: Object) -> bool:
        """Whether the object has an Apply entry of ours, under any of our names."""
        return any(our_entry(obj, manager) is not None for manager in (self.manager, *self.formerly))

    def turn(self, kind: Kind, name: str, namespace: str | None) -> AbstractAsyncContextManager[None]:
        return self.turns.turn(key_of(kind, name, namespace))

    def remembered(self, kind: Kind, name: str, namespace: str | None) -> dict[tuple[str, str], Memo]:
        """What is remembered of that name, by field manager and what was written."""
        key = key_of(kind, name, namespace)
        if key not in self.memos and len(self.memos) >= KEPT:
            del self.memos[next(iter(self.memos))]
        return self.memos.setdefault(key, {})

    def newest(self, kind: Kind, obj: Object) -> Object:
        """The newer of the object as it was given and as the local view has it, if that still is the same one."""
        cached = self.seen.peek(kind, obj.name, obj.namespace)
        if cached is None or cached.uid != obj.uid:
            return obj
        return obj if as_integer(obj.resource_version) > as_integer(cached.resource_version) else cached

    async def live(self, kind: Kind, obj: Object) -> Object:
        """The same object, read now. Raises Gone or Replaced when it is not there any more."""
        try:
            live = await self.client.get(kind, obj.name, obj.namespace)
        except NotFound:
            self.observe_removal(kind, obj)
            raise ObjectDeleted(told(kind, obj.name, obj.namespace)) from None
        if live.uid != obj.uid:
            self.observe_removal(kind, obj)
            raise ObjectReplaced(told(kind, obj.name, obj.namespace))
        return live

    def forget_removed(self, kind: Kind, obj: Object) -> Object:
        """Return the answer of a write. If the write removed the object, forget what is remembered of it.

        The writer does not record the answer in the local view: its client does (`RecordingClient`).
        """
        if is_removed(obj):
            self.forget(kind, obj)
        return obj

    def forget(self, kind: Kind, obj: Object) -> None:
        """Forget what is remembered of the object: it was removed."""
        self.memos.pop(key_of(kind, obj.name, obj.namespace), None)

    def observe_removal(self, kind: Kind, obj: Object) -> None:
        """Forget the object, and report to the local view that the server does not have it any more."""
        self.forget(kind, obj)
        self.seen.observe_removal(kind, obj.name, obj.namespace, obj.uid)


def refuse_special(manager: str) -> None:
    """Raise where servers treat a field manager in a way of its own."""
    if manager == "kubectl":  # a server rewrites its last-applied annotation and lets it force
        raise ValueError("the field manager 'kubectl' is special to servers: use the operator's own name")


def key_of(kind: Kind, name: str, namespace: str | None) -> Key:
    return kind.group, kind.kind, namespace if kind.namespaced else None, name


def identified(kind: Kind, obj: Object) -> None:
    """Raise where no uid and kind say which object is meant: one of that name would do, and be another's."""
    what = told(kind, obj.name, obj.namespace)
    if obj.kind not in ("", METADATA_ONLY, kind.kind):
        raise ValueError(f"{what} is meant, but a {obj.kind} is given: give the object of that kind")
    if not obj.uid:
        raise ValueError(f"{what} has no uid: give the object as a server answered it, not one built by hand")


def told(kind: Kind, name: str, namespace: str | None) -> str:
    """An object in words."""
    return f"{kind.kind} {namespace}/{name}" if namespace else f"{kind.kind} {name}"
