"""Children: forced server-side apply that can neither take over a stranger's object nor revive a deleted one.

docs/explanation/apply.md has the reasons.
"""

import asyncio
import re
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from fairlead.api.errors import Conflict, Invalid, NotFound, UnknownOutcome
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.writes.delete import delete_in_turn
from fairlead.writes.elision import digest, owned, unchanged
from fairlead.writes.errors import (
    DecisionContention,
    DuplicatePayload,
    ForeignObject,
    ImmutableField,
    ObjectDeleted,
    WriteError,
)
from fairlead.writes.jsonpatch import Path, at, named
from fairlead.writes.migrate import former, inherit
from fairlead.writes.payload import can_own, kind_in, scratch
from fairlead.writes.writer import Memo, Writer, told

# Create and look take turns only while others delete and make the name anew in between.
LOOKS = 8
# A finalizer may hold a child that is to be made anew; a reconcile must not wait for ever.
GONE_WITHIN = 30.0
# So many children of one object are written at a time: enough to hide the round trips, not to flood a server.
SIDE_BY_SIDE = 16

# How servers word that a field cannot change. There is no reason of its own for it in a Status.
_IMMUTABLE = re.compile(r"(?i)immutable|cannot change|may not (be )?(change|update)|updates to .* are forbidden")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')  # the value that is refused, which may say anything

# Old enough to be no object's version: ignored when the apply creates, refused when anything is there.
_NEVER = "1"


async def apply(
    writer: Writer,
    payload: Mapping[str, Any],
    *,
    owner: Object | None = None,
    adopt: bool = False,
    recreate: bool = False,
) -> Object:
    """Apply the payload to a child object and return the object as the server stored it.

    Guarantees:
        An object that is not ours is never changed. An object is ours if the owner is its controller. Where an owner
        reference is impossible, it is ours if it has an Apply entry of our field manager. `adopt=True` also takes over
        an object that nobody controls.
        An object that this process has seen, and that was deleted since, is not created again by this call.
        Fields that the payload omits and that others wrote stay as they are.
        Nothing is sent if nothing would change.

    Does not guarantee:
        The payload's fields are forced, so this call overwrites what others wrote there. Include only fields you own.

    Raises:
        ForeignObject: another owner has an object of that name, or nobody controls it and `adopt` is false.
        ImmutableField: the server rejects a change of an immutable field. With `recreate=True`, the child is deleted
            instead, and created again once it is gone. With `adopt=True` too, that includes one that nobody controls.
        ObjectDeleted, ObjectReplaced: the object was deleted, or deleted and recreated, since it was last seen.
    """
    kind = await writer.client.resolve(kind_in(payload))
    return await Child(writer, kind, payload, owner, adopt).make(recreate=recreate)


async def apply_all(
    writer: Writer,
    payloads: Iterable[Mapping[str, Any]],
    *,
    owner: Object | None = None,
    adopt: bool = False,
    recreate: bool = False,
) -> list[Object]:
    """`apply` for each, side by side; the answers in order. All are tried; then the first failure is raised.

    Two payloads of one object are refused before anything is sent (`DuplicatePayload`).
    """
    payloads = list(payloads)
    refuse_twins(payloads, None if owner is None else owner.namespace)
    return await side_by_side([apply(writer, each, owner=owner, adopt=adopt, recreate=recreate) for each in payloads])


def refuse_twins(payloads: Iterable[Mapping[str, Any]], namespace: str | None) -> None:
    """Raise where two payloads are of one object; one that names no namespace is in that one."""
    known: set[tuple[str, ...]] = set()
    for payload in payloads:
        kind, metadata = kind_in(payload), payload.get("metadata") or {}
        place, name = metadata.get("namespace") or namespace, metadata.get("name")
        key = (kind.group, kind.kind, str(place), str(name))
        if key in known:
            raise DuplicatePayload(f"{kind.kind} {name}")
        known.add(key)


async def side_by_side(applies: Iterable[Awaitable[Object]]) -> list[Object]:
    """What each gives, in order. All are tried, then the first failure is raised, with what the others said."""
    room = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(each: Awaitable[Object]) -> Object:
        async with room:
            return await each

    results = await asyncio.gather(*map(one, applies), return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        for other in failures[1:]:
            failures[0].add_note(f"also: {other}")
        raise failures[0]
    return [result for result in results if isinstance(result, Object)]


class Child:
    """One apply: what is to be sent and, while it holds the object's turn, the way to that."""

    def __init__(
        self, writer: Writer, kind: Kind, payload: Mapping[str, Any], owner: Object | None, adopt: bool
    ) -> None:
        self.writer, self.kind, self.owner, self.adopt = writer, kind, owner, adopt
        self.payload = scratch(kind, payload, owner)
        self.name: str = self.payload["metadata"]["name"]
        self.namespace: str | None = self.payload["metadata"].get("namespace")
        self.what = told(kind, self.name, self.namespace)
        self.digest = digest(self.payload)
        self.owner_controls = owner is not None and can_own(owner, self.namespace if kind.namespaced else None)

    async def make(self, *, recreate: bool) -> Object:
        async with self.writer.turn(self.kind, self.name, self.namespace):
            try:
                return await self.apply()
            except ImmutableField:
                if not recreate:
                    raise
                await self.remove()
                return await self.apply()

    async def apply(self) -> Object:
        version = self.writer.seen.version(self.kind, self.name, self.namespace)
        memo, cached = self.memo(), None
        if version is not None:
            cached = self.writer.seen.peek(self.kind, self.name, self.namespace)
            same_again = memo is not None and (memo.uid, memo.resource_version, memo.payload) == (*version, self.digest)
            if cached is not None and (same_again or self.ours(cached)):
                return cached if same_again else await self.settle(cached)
        elif memo is not None and not self.writer.seen.covers(self.kind, self.namespace):
            return await self.onto(memo.uid)
        return await self.create(cached)

    async def settle(self, obj: Object) -> Object:
        """Make an object that is ours what the payload says."""
        if former(self.writer, obj):
            obj = (await inherit(self.writer, self.kind, obj)).object
        return obj if self.settled(obj) else await self.onto(obj.uid)

    def settled(self, obj: Object) -> bool:
        """Nothing would change: our fields are what this very payload became before, or what it says."""
        mine = owned(obj, self.writer.manager, self.payload["apiVersion"])
        if not mine:
            return False
        memo = self.memo()
        became = memo is not None and (memo.uid, memo.payload, memo.outcome) == (obj.uid, self.digest, digest(mine))
        if not became and not unchanged(self.payload, obj, self.writer.manager):
            return False
        self.remember(obj)
        return True

    async def create(self, seen: Object | None) -> Object:
        """Create, or be refused by what is there, unless that is to be adopted and is as it was seen; then look."""
        if not (self.owner_controls or self.adopt or self.has_fields()):
            raise ValueError(
                f"{self.what} has no field and no owner in its place, so nothing would show after a restart that it is "
                "ours: give it a label"
            )
        version = seen.resource_version if seen is not None and self.may_have(seen) else _NEVER
        lost = False
        for _ in range(LOOKS):
            try:
                return await self.send(resourceVersion=version)
            except (Conflict, UnknownOutcome) as error:
                version = _NEVER
                try:
                    live = await self.writer.client.get(self.kind, self.name, self.namespace)
                except NotFound:
                    if lost and isinstance(error, UnknownOutcome):  # the connection is at fault
                        raise error from None
                    lost = isinstance(error, UnknownOutcome)
                    continue
            if not self.may_have(live):
                raise ForeignObject(self.what, holder_of(live))
            return await self.settle(live)
        raise DecisionContention(self.what, LOOKS)

    async def onto(self, uid: str) -> Object:
        """Apply to the object of that uid and to no other."""
        for attempt in (1, 2):
            try:
                return await self.send(uid=uid)
            except Conflict:
                pass
            except UnknownOutcome:
                if attempt == 2:
                    raise
            except Invalid as error:
                if not any(cause.get("field") == "metadata.uid" for cause in error.causes):
                    raise
            stub = Object({"metadata": {"name": self.name, "namespace": self.namespace, "uid": uid}})
            live = await self.writer.live(self.kind, stub)  # raises Gone or Replaced
            if self.settled(live):
                return live
        raise DecisionContention(self.what, 2)

    async def send(self, **guard: str) -> Object:
        try:
            answer = await self.request(self.payload, guard)
        except Invalid as error:
            emptied = [path for cause in error.causes if (path := _emptied(self.payload, cause))]
            if not emptied:
                raise
            answer = await self.request(_without(self.payload, emptied), guard)
        self.remember(answer)
        return self.writer.forget_removed(self.kind, answer)

    async def request(self, payload: dict[str, Any], guard: dict[str, str]) -> Object:
        body = {**payload, "metadata": {**payload["metadata"], **guard}}
        try:
            return await self.writer.client.apply(body, field_manager=self.writer.manager, force=True)
        except Invalid as error:
            # with more than that in the way, one made anew would be refused too, and the old one be gone
            if error.causes and all(map(_immutable, error.causes)):
                raise ImmutableField(self.what, error.causes) from error
            raise

    async def remove(self) -> None:
        """Delete the child that is there and wait until it is gone."""
        try:
            live = await self.writer.client.get(self.kind, self.name, self.namespace)
        except NotFound:  # someone was quicker, and may not want it back
            raise ObjectDeleted(self.what) from None
        if not self.may_have(live):
            raise ForeignObject(self.what, holder_of(live))
        await delete_in_turn(self.writer, self.kind, live, propagation="Background")
        delay, waited = 0.02, 0.0
        while waited < GONE_WITHIN:
            try:
                await self.writer.live(self.kind, live)
            except ObjectDeleted:
                return
            await asyncio.sleep(delay)
            waited, delay = waited + delay, min(delay * 2, 1.0)
        raise WriteError(
            f"{self.what} is to be made anew and is still there after {GONE_WITHIN:.0f} s: "
            f"see who holds its finalizers {live.finalizers}"
        )

    def may_have(self, obj: Object) -> bool:
        """It is ours, or nobody's and to be adopted."""
        return self.ours(obj) or (self.adopt and controller_of(obj) is None)

    def ours(self, obj: Object) -> bool:
        if self.owner is not None and self.owner_controls:
            return controller_of(obj) == self.owner.uid
        # an entry goes with the last field that others took from us, so what this process applied counts too
        memo = self.memo()
        return (memo is not None and memo.uid == obj.uid) or self.writer.applied(obj)

    def has_fields(self) -> bool:
        """Whether the payload has a field that an Apply entry can name."""
        return bool(self.payload.keys() - {"apiVersion", "kind", "metadata"}) or bool(
            self.payload["metadata"].keys() - {"name", "namespace"}
        )

    def memo(self) -> Memo | None:
        return self.writer.remembered(self.kind, self.name, self.namespace).get((self.writer.manager, ""))

    def remember(self, obj: Object) -> None:
        mine = owned(obj, self.writer.manager, self.payload["apiVersion"])
        outcome = digest(mine) if mine else b""
        memos = self.writer.remembered(self.kind, self.name, self.namespace)
        memos[self.writer.manager, ""] = Memo(obj.uid, obj.resource_version, self.digest, outcome)


def _immutable(cause: dict[str, Any]) -> bool:
    """Whether a field stands in the way that cannot change; the uid only says that another object was meant."""
    words = _QUOTED.sub("", str(cause.get("message")))
    return cause.get("field") != "metadata.uid" and bool(_IMMUTABLE.search(words))


def _emptied(payload: dict[str, Any], cause: dict[str, Any]) -> Path | None:
    """The map that the payload now has empty and a server made null of: it does so when the last key is given up."""
    path = named(str(cause.get("field") or ""))
    return path if '"null"' in str(cause.get("message")) and at(payload, path) == {} else None


def _without(payload: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
    """The payload without what is at the paths; left out, an emptied map is given up as it was meant to be."""
    left = {key: value for key, value in payload.items() if (key,) not in paths}
    for key in {path[0] for path in paths if len(path) > 1}:
        left[str(key)] = _without(left[str(key)], [path[1:] for path in paths if path[0] == key and len(path) > 1])
    return left


def controller_of(obj: Object) -> str | None:
    """The uid of the owner that controls the object."""
    for ref in obj.metadata.get("ownerReferences") or ():
        if ref.get("controller"):
            return str(ref.get("uid"))
    return None


def holder_of(obj: Object) -> str:
    for ref in obj.metadata.get("ownerReferences") or ():
        if ref.get("controller"):
            return f"is controlled by {ref.get('kind')} {ref.get('name')}"
    return "has no controller"
