"""Decisions: optimistic concurrency on exactly the fields that were read.

docs/explanation/decide.md explains the guarantee, what it does not cover, and how it compares with resourceVersion.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fairlead.api.errors import Conflict, Invalid, NotFound, UnknownOutcome
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.text import reject_single_string
from fairlead.client.client import PatchType
from fairlead.writes import purity
from fairlead.writes.draft import Draft
from fairlead.writes.errors import DecisionContention, PatchTestMismatch, UndeclaredField, WriteError
from fairlead.writes.json_patch import Op, Path, parse_field, parse_pointer, passes_all_tests, to_pointer
from fairlead.writes.payload import SERVER_FIELDS
from fairlead.writes.writer import Writer, describe_object, require_uid

T = TypeVar("T")

# Each lost run means that someone else's write won, so sixteen of them mean many writers on the fields that are read.
MAX_RUNS = 16
MAX_LOST_ANSWERS = 2  # After two lost answers in one decision the connection is at fault.
MIN_DELAY, MAX_DELAY = 0.002, 0.2  # Bounds of the random delay before a further run, in seconds; it doubles each time.

# The fields that identify the object, and those that the server manages: it rejects a change of them, drops it, or
# loses track of who owns which field.
_IDENTITY: frozenset[Path] = frozenset({(), ("apiVersion",), ("kind",), ("metadata",)})
_SERVER_MANAGED: frozenset[Path] = frozenset(("metadata", key) for key in ("name", "namespace", *SERVER_FIELDS))


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """The outcome of `decide`: the function's result, the object afterwards, and whether a write was sent."""

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
) -> Decision[T]:
    """Let a pure function change a draft of `obj`, and write the changes if the values that it read are unchanged.

    Guarantees:
        The changes reach only the object with that uid. They are written only while every field, absence and list that
        the function read, every value it replaces and every gap it fills are as it saw them. Otherwise the function
        runs again on a live read. Writers of other fields do not cause another run.

    Does not guarantee:
        Fields that the function did not read may have changed. A decision to change nothing sends nothing, so it is
        as old as the copy it was made on.

    `only` lists the fields that may change: `spec.replicas`, or a JSON pointer if a key contains dots.

    Raises:
        ObjectDeleted, ObjectReplaced: the object no longer exists.
        DecisionContention: others changed what the function reads before each of its writes.
        ImpureDecision: the function depends on something other than the object.
        UndeclaredField: the function changed a field that is not in `only`.
        UnknownOutcome: the answer of the server was lost twice, so the write may have happened.
        Any exception that the function raises.

    Example:
        def claim(draft: Draft) -> bool:
            if draft.spec.get("claimedBy"):
                return False
            draft.spec["claimedBy"] = "me"
            return True

        claimed = (await decide(writer, kind, obj, claim)).result
    """
    require_uid(kind, obj)
    target = describe_object(kind, obj.name, obj.namespace)
    reject_single_string("only", only or ())
    allowed = None if only is None else [parse_field(field) for field in only]
    async with writer.lock(kind, obj.name, obj.namespace):
        base, base_is_live, lost_answers = writer.newest(kind, obj), False, 0
        for run in range(MAX_RUNS):
            if run > 1:
                # The second run starts immediately. After that another writer is as fast as we are, and a random
                # delay separates the two.
                await asyncio.sleep(writer.world.random.uniform(0, min(MAX_DELAY, MIN_DELAY * 2**run)))
                base = await writer.read_live(kind, obj)
            result, edits, patch = purity.run(function, base)
            if not patch.changes:
                return Decision(result, writer.skip("patch", kind, base), changed=False)
            _check_declared(target, edits, allowed)
            _check_writable(target, kind, patch.changes)
            subresource = await _choose_subresource(writer, kind, target, patch.changes)
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
                if not is_failed_test(error):
                    raise
                live = await writer.read_live(kind, obj)
                if passes_all_tests(live, patch.ops):
                    if is_webhook_rejection(error):
                        raise
                    if base_is_live and live.resource_version == base.resource_version:
                        raise PatchTestMismatch(target, patch.ops) from error
            except NotFound:
                await writer.read_live(kind, obj)  # Raises ObjectDeleted. If it does not, the endpoint is missing.
                raise
            except Conflict:
                live = await writer.read_live(kind, obj)
            except UnknownOutcome:
                lost_answers += 1
                if lost_answers == MAX_LOST_ANSWERS:
                    raise
                live = await writer.read_live(kind, obj)
            else:
                return Decision(result, writer.forget_removed(kind, answer), changed=True)
            base, base_is_live = live, True
    raise DecisionContention(target, MAX_RUNS)


def is_failed_test(error: Invalid) -> bool:
    """Return whether a 422 reports a failed JSON patch test.

    Such a 422 has no causes. Every other 422 has causes, except that of an admission webhook.
    """
    return not error.causes


def is_webhook_rejection(error: Invalid) -> bool:
    """Return whether a 422 without causes comes from an admission webhook. The message of a failed test is fixed."""
    return not error.message.startswith("the server rejected our request")


def _check_declared(target: str, edits: Iterable[Path], allowed: list[Path] | None) -> None:
    if allowed is None:
        return
    for path in edits:
        path_texts = tuple(map(str, path))
        if not any(path_texts[: len(field)] == field for field in allowed):
            raise UndeclaredField(target, to_pointer(path), [to_pointer(field) for field in allowed])


def _check_writable(target: str, kind: Kind, changes: list[Op]) -> None:
    for op in changes:
        path = parse_pointer(op["path"])
        if kind.key == ("v1", "Secret") and path[0] == "stringData":
            raise WriteError(
                f"{target}: the decision changes stringData, which the server writes over data without any test: "
                "change data instead, encoded in base64"
            )
        if path in _IDENTITY or path[:2] in _SERVER_MANAGED:
            raise WriteError(f"{target}: the decision changes {op['path']}, which the server manages: do not change it")


async def _choose_subresource(writer: Writer, kind: Kind, target: str, changes: list[Op]) -> str | None:
    """Return "status" if the changes must be sent to the status subresource, else None.

    The main endpoint ignores changes of the status, and the status subresource ignores all other changes.
    """
    is_status = {parse_pointer(op["path"])[0] == "status" for op in changes}
    if True not in is_status:
        return None
    if "status" not in (await writer.client.served(kind)).subresources:
        return None
    if False in is_status:
        raise WriteError(
            f"{target}: one decision changes status and other fields, which needs two requests: make two decisions"
        )
    return "status"
