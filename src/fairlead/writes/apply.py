"""Apply children by forced server-side apply, without taking over foreign objects or recreating deleted ones.

docs/explanation/apply.md explains the design.
"""

import asyncio
import re
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from fairlead.api.errors import Conflict, Invalid, NotFound, UnknownOutcome
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.writes.delete import delete_locked
from fairlead.writes.errors import (
    DecisionContention,
    DuplicatePayload,
    ForeignObject,
    ImmutableField,
    ObjectDeleted,
    WriteError,
)
from fairlead.writes.json_patch import Path, parse_field, value_at
from fairlead.writes.migrate import has_former_entries, take_over_former_entries
from fairlead.writes.no_op import digest, extract_owned_fields, is_no_op
from fairlead.writes.payload import build_payload, can_own, kind_of_payload
from fairlead.writes.writer import LastWrite, Writer, describe_object

# A create is repeated only if others delete and recreate the object in between.
MAX_CREATE_ATTEMPTS = 8
# Finalizers can delay the deletion of a child that must be recreated. A reconcile must not wait without end.
DELETION_TIMEOUT = 30.0
# The number of children of one object that are written concurrently: enough to hide the round trips without flooding
# the server.
MAX_CONCURRENT_APPLIES = 16

# How servers word that a field cannot change. A Status has no reason for it.
_IMMUTABLE = re.compile(r"(?i)immutable|cannot change|may not (be )?(change|update)|updates to .* are forbidden")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')  # The rejected value, which may contain any text.

# No object has this resourceVersion. The server ignores it if the apply creates, and rejects the apply if an object
# exists.
_CREATE_ONLY_VERSION = "1"


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
        ReadValueInPayload: the payload contains a value that was read from the server.
        UnknownOutcome: the answer of the server was lost, so the write may have happened.

    Example:
        await apply(
            writer,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"mode": "fast"}},
            owner=website,
        )
    """
    kind = await writer.client.resolve(kind_of_payload(payload))
    return await ChildApply(writer, kind, payload, owner, adopt).run(recreate=recreate)


async def apply_all(
    writer: Writer,
    payloads: Iterable[Mapping[str, Any]],
    *,
    owner: Object | None = None,
    adopt: bool = False,
    recreate: bool = False,
) -> list[Object]:
    """Apply several payloads concurrently, and return the objects in the order of the payloads.

    Guarantees:
        Every payload is tried, even if another one fails.
        Otherwise the same as `apply` for each payload.

    Raises:
        DuplicatePayload: two payloads describe the same object. Nothing is sent.
        The first error of `apply`, after all payloads were tried. Its notes contain the other errors.
    """
    payloads = list(payloads)
    reject_duplicate_payloads(payloads, None if owner is None else owner.namespace)
    return await run_concurrently(
        [apply(writer, payload, owner=owner, adopt=adopt, recreate=recreate) for payload in payloads]
    )


def reject_duplicate_payloads(payloads: Iterable[Mapping[str, Any]], default_namespace: str | None) -> None:
    """Raise DuplicatePayload if two payloads have the same kind, namespace and name."""
    keys: set[tuple[str, ...]] = set()
    for payload in payloads:
        kind, metadata = kind_of_payload(payload), payload.get("metadata") or {}
        namespace, name = metadata.get("namespace") or default_namespace, metadata.get("name")
        key = (kind.group, kind.kind, str(namespace), str(name))
        if key in keys:
            raise DuplicatePayload(f"{kind.kind} {name}")
        keys.add(key)


async def run_concurrently(pending_applies: Iterable[Awaitable[Object]]) -> list[Object]:
    """Run all applies and return their results in order. Then raise the first error, with notes on the others."""
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_APPLIES)

    async def run_limited(apply: Awaitable[Object]) -> Object:
        async with semaphore:
            return await apply

    results = await asyncio.gather(*map(run_limited, pending_applies), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        for other in errors[1:]:
            errors[0].add_note(f"also: {other}")
        raise errors[0]
    return [result for result in results if isinstance(result, Object)]


class ChildApply:
    """One apply of one child object: the payload, and the steps that run while the object is locked."""

    def __init__(
        self, writer: Writer, kind: Kind, payload: Mapping[str, Any], owner: Object | None, adopt: bool
    ) -> None:
        self.writer, self.kind, self.owner, self.adopt = writer, kind, owner, adopt
        self.payload = build_payload(kind, payload, owner)
        self.name: str = self.payload["metadata"]["name"]
        self.namespace: str | None = self.payload["metadata"].get("namespace")
        self.target = describe_object(kind, self.name, self.namespace)
        self.digest = digest(self.payload)
        self.owner_controls = owner is not None and can_own(owner, self.namespace if kind.namespaced else None)

    async def run(self, *, recreate: bool) -> Object:
        async with self.writer.lock(self.kind, self.name, self.namespace):
            try:
                return await self.apply()
            except ImmutableField:
                if not recreate:
                    raise
                await self.delete_and_wait()
                return await self.apply()

    async def apply(self) -> Object:
        cache = self.writer.cache
        version = cache.version(self.kind, self.name, self.namespace)
        last, cached = self.last_write(), None
        if version is not None:
            cached = cache.peek(self.kind, self.name, self.namespace)
            is_repeat = last is not None and (last.uid, last.resource_version, last.payload) == (*version, self.digest)
            if cached is not None and (is_repeat or self.is_ours(cached)):
                return self.skip(cached) if is_repeat else await self.update(cached)
        elif last is not None and not cache.covers(self.kind, self.namespace):
            return await self.apply_to_uid(last.uid)
        return await self.create(cached)

    async def update(self, obj: Object) -> Object:
        """Apply the payload to an existing object of ours. Nothing is sent if the payload would change nothing."""
        if has_former_entries(self.writer, obj):
            obj = (await take_over_former_entries(self.writer, self.kind, obj)).object
        return self.skip(obj) if self.is_up_to_date(obj) else await self.apply_to_uid(obj.uid)

    def skip(self, obj: Object) -> Object:
        return self.writer.skip("apply", self.kind, obj)

    def is_up_to_date(self, obj: Object) -> bool:
        """Return whether an apply of the payload would change nothing in `obj`.

        The result is True if the fields that we own equal the payload, or equal what the server stored for this payload
        the last time.
        """
        owned_fields = extract_owned_fields(obj, self.writer.manager, self.payload["apiVersion"])
        if not owned_fields:
            return False
        last = self.last_write()
        is_known_outcome = last is not None and (last.uid, last.payload, last.outcome) == (
            obj.uid,
            self.digest,
            digest(owned_fields),
        )
        if not is_known_outcome and not is_no_op(self.payload, obj, self.writer.manager):
            return False
        self.remember(obj)
        return True

    async def create(self, cached: Object | None) -> Object:
        """Create the child object, or adopt the cached object, which nobody controls.

        If another object of that name exists, the server rejects the request. Then this method reads that object and
        updates it if it is ours.
        """
        if not (self.owner_controls or self.adopt or self.has_fields()):
            raise ValueError(
                f"{self.target} has no fields and no owner reference, so nothing would show after a restart that it is "
                "ours: give it a label"
            )
        version = cached.resource_version if cached is not None and self.may_write(cached) else _CREATE_ONLY_VERSION
        answer_was_lost = False
        for _ in range(MAX_CREATE_ATTEMPTS):
            try:
                return await self.send(resourceVersion=version)
            except (Conflict, UnknownOutcome) as error:
                version = _CREATE_ONLY_VERSION
                try:
                    live = await self.writer.client.get(self.kind, self.name, self.namespace)
                except NotFound:
                    # Two lost answers in a row point to the connection, not to another writer.
                    if answer_was_lost and isinstance(error, UnknownOutcome):
                        raise error from None
                    answer_was_lost = isinstance(error, UnknownOutcome)
                    continue
            if not self.may_write(live):
                raise ForeignObject(self.target, describe_controller(live))
            return await self.update(live)
        raise DecisionContention(self.target, MAX_CREATE_ATTEMPTS)

    async def apply_to_uid(self, uid: str) -> Object:
        """Apply the payload to the object with that uid. The server rejects the apply for any other object."""
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
            live = await self.writer.read_live(self.kind, stub)  # Raises ObjectDeleted or ObjectReplaced.
            if self.is_up_to_date(live):
                return live
        raise DecisionContention(self.target, 2)

    async def send(self, **precondition: str) -> Object:
        try:
            answer = await self.request(self.payload, precondition)
        except Invalid as error:
            emptied = [path for cause in error.causes if (path := _find_emptied_map(self.payload, cause))]
            if not emptied:
                raise
            answer = await self.request(_remove_paths(self.payload, emptied), precondition)
        self.remember(answer)
        return self.writer.forget_removed(self.kind, answer)

    async def request(self, payload: dict[str, Any], precondition: dict[str, str]) -> Object:
        body = {**payload, "metadata": {**payload["metadata"], **precondition}}
        try:
            return await self.writer.client.apply(body, field_manager=self.writer.manager, force=True)
        except Invalid as error:
            # With any other cause, the server would reject a recreated object too, and the old one would be lost.
            if error.causes and all(map(_is_immutable, error.causes)):
                raise ImmutableField(self.target, error.causes) from error
            raise

    async def delete_and_wait(self) -> None:
        """Delete the child and wait until it no longer exists."""
        try:
            live = await self.writer.client.get(self.kind, self.name, self.namespace)
        except NotFound:  # Someone else deleted it, and may not want it back.
            raise ObjectDeleted(self.target) from None
        if not self.may_write(live):
            raise ForeignObject(self.target, describe_controller(live))
        await delete_locked(self.writer, self.kind, live, propagation="Background")
        delay, waited = 0.02, 0.0
        while waited < DELETION_TIMEOUT:
            try:
                await self.writer.read_live(self.kind, live)
            except ObjectDeleted:
                return
            await asyncio.sleep(delay)
            waited, delay = waited + delay, min(delay * 2, 1.0)
        raise WriteError(
            f"{self.target} must be recreated, but still exists {DELETION_TIMEOUT:.0f} s after its deletion: find out "
            f"which controller has to remove its finalizers {live.finalizers}"
        )

    def may_write(self, obj: Object) -> bool:
        """Return whether this apply may change `obj`: it is ours, or it has no controller and `adopt` is set."""
        return self.is_ours(obj) or (self.adopt and controller_of(obj) is None)

    def is_ours(self, obj: Object) -> bool:
        if self.owner is not None and self.owner_controls:
            return controller_of(obj) == self.owner.uid
        # Our entry disappears when others take over its last field. Therefore our last write counts too.
        last = self.last_write()
        return (last is not None and last.uid == obj.uid) or self.writer.has_applied(obj)

    def has_fields(self) -> bool:
        """Return whether the payload has a field besides apiVersion, kind, name and namespace."""
        return bool(self.payload.keys() - {"apiVersion", "kind", "metadata"}) or bool(
            self.payload["metadata"].keys() - {"name", "namespace"}
        )

    def last_write(self) -> LastWrite | None:
        return self.writer.last_writes_of(self.kind, self.name, self.namespace).get((self.writer.manager, ""))

    def remember(self, obj: Object) -> None:
        owned_fields = extract_owned_fields(obj, self.writer.manager, self.payload["apiVersion"])
        outcome = digest(owned_fields) if owned_fields else b""
        last_writes = self.writer.last_writes_of(self.kind, self.name, self.namespace)
        last_writes[self.writer.manager, ""] = LastWrite(obj.uid, obj.resource_version, self.digest, outcome)


def _is_immutable(cause: dict[str, Any]) -> bool:
    """Return whether a cause of a 422 names an immutable field other than metadata.uid.

    A cause for metadata.uid means that the object was deleted and recreated.
    """
    message = _QUOTED.sub("", str(cause.get("message")))
    return cause.get("field") != "metadata.uid" and bool(_IMMUTABLE.search(message))


def _find_emptied_map(payload: dict[str, Any], cause: dict[str, Any]) -> Path | None:
    """Return the path of a map that is empty in the payload and that the server rejected as null, else None.

    A server turns a map into null when an apply removes its last key.
    """
    path = parse_field(str(cause.get("field") or ""))
    return path if '"null"' in str(cause.get("message")) and value_at(payload, path) == {} else None


def _remove_paths(payload: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
    """Return a copy of the payload without the fields at `paths`."""
    remaining = {key: value for key, value in payload.items() if (key,) not in paths}
    for key in {path[0] for path in paths if len(path) > 1}:
        inner_paths = [path[1:] for path in paths if path[0] == key and len(path) > 1]
        remaining[str(key)] = _remove_paths(remaining[str(key)], inner_paths)
    return remaining


def controller_of(obj: Object) -> str | None:
    """Return the uid in the ownerReference with `controller: true`, or None."""
    for ref in obj.metadata.get("ownerReferences") or ():
        if ref.get("controller"):
            return str(ref.get("uid"))
    return None


def describe_controller(obj: Object) -> str:
    """Return a phrase for an error message, such as `is controlled by Deployment web`."""
    for ref in obj.metadata.get("ownerReferences") or ():
        if ref.get("controller"):
            return f"is controlled by {ref.get('kind')} {ref.get('name')}"
    return "has no controller"
