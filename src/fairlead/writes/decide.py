"""A decision: optimistic concurrency at the grain of what was read.

docs/explanation/decide.md has the guarantee, what it does not guard, and the comparison with resourceVersion.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fairlead.api.errors import Conflict, Invalid, NotFound, UnknownOutcome
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.text import refuse_text
from fairlead.client.client import PatchType
from fairlead.writes import purity
from fairlead.writes.draft import Draft
from fairlead.writes.errors import DecisionContention, PatchTestMismatch, UndeclaredField, WriteError
from fairlead.writes.jsonpatch import Op, Path, named, parse, pointer, tests_hold
from fairlead.writes.payload import SERVERS
from fairlead.writes.view import Ledger
from fairlead.writes.writer import Writer, identified, told

T = TypeVar("T")

# Each run that loses means that another's write won, so sixteen is a crowd on the very fields that are read.
RUNS = 16
LOST = 2  # an answer that is lost twice is a connection to complain about
SHORTEST, LONGEST = 0.002, 0.2  # seconds that a run which lost twice waits at most, doubled with each

# What says which object it is, and what a server keeps in it: a change is refused, dropped, or undoes who owns what.
_IDENTITY: frozenset[Path] = frozenset({(), ("apiVersion",), ("kind",), ("metadata",)})
_SERVERS: frozenset[Path] = frozenset(("metadata", key) for key in ("name", "namespace", *SERVERS))


@dataclass(frozen=True, slots=True)
class Decided(Generic[T]):
    """What the function returned in the run that counted, the object after it, and whether a write was sent."""

    result: T
    object: Object
    changed: bool


async def decide(
    writer: Writer,
    kind: Kind,
    obj: Object,
    function: Callable[[Draft], T],
    *,
    only: Sequence[str] | None = None,
) -> Decided[T]:
    """Let a pure function decide on changes to `obj`, and make them if what it read still holds.

    Guaranteed: the changes land only on the object of that uid, and only while every field, absence and list that the
    function read, every value that it sets and every absence that it fills are as it saw them. Otherwise it runs
    again on a live read; unrelated writers never make it. Not guaranteed: anything it did not read, and a decision to
    change nothing (that one is not sent, so it is as old as the copy it was made on).

    `only` names the fields that may change (`spec.replicas`, or a pointer where a key has dots). Raises Gone, Replaced,
    Undecided, Impure, and what the function raises.
    """
    identified(kind, obj)
    what = told(kind, obj.name, obj.namespace)
    refuse_text("only", only or ())
    allowed = None if only is None else [named(field) for field in only]
    async with writer.turn(kind, obj.name, obj.namespace):
        base, live, lost = writer.newest(kind, obj), False, 0
        for run in range(RUNS):
            if run > 1:  # the second goes at once; then someone is as quick as we are, and waits of chance part us
                await asyncio.sleep(writer.world.random.uniform(0, min(LONGEST, SHORTEST * 2**run)))
                base = await writer.live(kind, obj)
            result, ledger, patch = purity.run(function, base)
            if not patch.changes:
                return Decided(result, base, changed=False)
            _check(what, ledger, allowed)
            _leave_alone(what, kind, patch.changes)
            subresource = await _endpoint(writer, kind, what, patch.changes)
            try:
                answer = await writer.client.patch(
                    kind,
                    obj.name,
                    obj.namespace,
                    patch.ops,
                    type=PatchType.JSON,
                    subresource=subresource,
                    field_manager=writer.manager,
                )
            except Invalid as error:
                if not failed_test(error):
                    raise
                found = await writer.live(kind, obj)
                if tests_hold(found, patch.ops):
                    if says_why(error):
                        raise
                    if live and found.resource_version == base.resource_version:
                        raise PatchTestMismatch(what, patch.ops) from error
            except NotFound:
                await writer.live(kind, obj)  # raises Gone; where the object is there, its endpoint is not
                raise
            except Conflict:
                found = await writer.live(kind, obj)
            except UnknownOutcome:
                lost += 1
                if lost == LOST:
                    raise
                found = await writer.live(kind, obj)
            else:
                return Decided(result, writer.forget_removed(kind, answer), changed=True)
            base, live = found, True
    raise DecisionContention(what, RUNS)


def failed_test(error: Invalid) -> bool:
    """A JSON patch whose test failed is a 422 with nothing in its details; all others have causes, but a webhook's."""
    return not error.causes


def says_why(error: Invalid) -> bool:
    """Whether it is in other words than those for a failed test, which say nothing: then a webhook refused."""
    return not error.message.startswith("the server rejected our request")


def _check(what: str, ledger: Ledger, allowed: list[Path] | None) -> None:
    if allowed is None:
        return
    for path in ledger.edits:
        parts = tuple(map(str, path))
        if not any(parts[: len(name)] == name for name in allowed):
            raise UndeclaredField(what, pointer(path), [pointer(name) for name in allowed])


def _leave_alone(what: str, kind: Kind, changes: list[Op]) -> None:
    for op in changes:
        path = parse(op["path"])
        if kind.key == ("v1", "Secret") and path[0] == "stringData":
            said = "which a server writes over data whatever is there: change data, encoded by base64"
            raise WriteError(f"{what}: the decision changes stringData, {said}")
        if path in _IDENTITY or path[:2] in _SERVERS:
            raise WriteError(f"{what}: the decision changes {op['path']}, which is the server's: leave it as it is")


async def _endpoint(writer: Writer, kind: Kind, what: str, changes: list[Op]) -> str | None:
    """Status is written at its own endpoint where the kind has one; each endpoint ignores the other's fields."""
    tops = {parse(op["path"])[0] == "status" for op in changes}
    if True not in tops:
        return None
    if "status" not in (await writer.client.served(kind)).subresources:
        return None
    if False in tops:
        raise WriteError(f"{what}: one decision changes status and more, which no request can do: make two decisions")
    return "status"
