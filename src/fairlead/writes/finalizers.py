"""Add and remove our own finalizer.

A finalizer keeps a deleted object in the cluster until the controller has cleaned up what it created outside of the
object: cloud resources, entries in another system, objects in another namespace or cluster.

Expected flow, which the runtime implements for controllers with a cleanup function:

1. A reconcile of an object that is not being deleted calls `add` before its first side effect.
2. Someone deletes the object. The server sets `metadata.deletionTimestamp` and keeps the object.
3. The controller runs its cleanup until it succeeds. It does not reconcile the object any more.
4. The controller calls `remove`. When the last finalizer is gone, the server deletes the object.
5. Before the operator is uninstalled, `release_all` removes the finalizer from every object. Nobody would do it later.

Guarantees:
    `add` returns only after the server has stored the finalizer, so no side effect can precede it.
    Only our own entry changes. Each write tests the uid and the list of finalizers that it is based on. If another
    controller changed the list meanwhile, the change is made again on a live read, and no entry of others is lost.
    Our finalizer is in the list at most once.
    `add` never adds a finalizer to an object that is being deleted, or to an object that was recreated under the name.
    `remove` can be repeated. It succeeds if the finalizer or the object is already gone.

Does not guarantee:
    Cleanup may run more than once: after a crash, a lost answer, or a failed `remove`. It must be idempotent.
    Cleanup does not run if someone removes the finalizer by hand, for example with kubectl edit.
    Cleanup gets no order relative to the finalizers of other controllers.
    An object stays in `Terminating` for as long as its controller does not run, or its cleanup fails.

Raises:
    ObjectDeleting, ObjectDeleted, ObjectReplaced from `add`: do not start any side effect.
    DecisionContention: others changed the list of finalizers before each of our writes. Retry later.
    UnknownOutcome: the answer was lost twice. The write may have happened; both functions can be called again.

Example:
    obj = await finalizers.add(writer, kind, obj, "example.com/bucket")
    await buckets.create(obj.uid)
    ...
    if obj.deleting:
        await buckets.delete(obj.uid)
        await finalizers.remove(writer, kind, obj, "example.com/bucket")
"""

from contextlib import suppress

from fairlead.api.errors import ApiError, UnknownOutcome
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.writes.decide import decide
from fairlead.writes.draft import Draft
from fairlead.writes.errors import ObjectDeleted, ObjectDeleting, WriteError
from fairlead.writes.writer import Writer, describe_object

PAGE_SIZE = 500  # Objects per list request, the same number that kubectl uses.
MAX_FAILURES_SHOWN = 10  # Keeps the message readable.


async def add(writer: Writer, kind: Kind, obj: Object, finalizer: str) -> Object:
    """Add our finalizer and return the object as the server stored it. Send nothing if the object already has it.

    Raises:
        ObjectDeleting: the object is being deleted, so the server would reject a new finalizer.
        ObjectDeleted, ObjectReplaced: the object no longer exists.
        DecisionContention, UnknownOutcome: see the module.
    """
    # The function must not capture `obj`: captures are compared.
    target = describe_object(kind, obj.name, obj.namespace)

    def add_finalizer(draft: Draft) -> None:
        if draft.deleting:
            raise ObjectDeleting(target)
        finalizers = draft.metadata.get("finalizers")
        if finalizers is None:
            draft.metadata["finalizers"] = [finalizer]
        elif finalizer not in finalizers:
            finalizers.append(finalizer)

    return (await decide(writer, kind, obj, add_finalizer)).object


async def remove(writer: Writer, kind: Kind, obj: Object, finalizer: str) -> None:
    """Remove our finalizer. Return without error if the finalizer or the object no longer exists.

    Raises:
        DecisionContention, UnknownOutcome: see the module.
    """

    def remove_finalizer(draft: Draft) -> None:
        finalizers = draft.metadata.get("finalizers")
        if finalizers and finalizer in finalizers:
            draft.metadata["finalizers"] = [other for other in finalizers if other != finalizer]

    with suppress(ObjectDeleted):
        await decide(writer, kind, obj, remove_finalizer)


async def release_all(writer: Writer, kind: Kind, finalizer: str, namespace: str | None = None) -> int:
    """Remove our finalizer from every object of the kind, for an uninstall. Return the number of objects that had it.

    Guarantees:
        A failure does not stop the run. All objects are tried, and the failures are raised at the end.

    Does not guarantee:
        Objects that get the finalizer during the run keep it. Stop the operator first.

    Raises:
        WriteError: the finalizer could not be removed from some objects. The message lists them.
    """
    released, failures, token = 0, list[str](), None
    while True:
        page = await writer.client.list(kind, namespace, limit=PAGE_SIZE, continue_=token, metadata_only=True)
        for obj in page.items:
            if finalizer not in obj.finalizers:
                continue
            try:
                await remove(writer, kind, obj, finalizer)
            except (ApiError, WriteError, UnknownOutcome) as error:
                failures.append(f"{describe_object(kind, obj.name, obj.namespace)}: {error}")
            else:
                released += 1
        token = page.continue_
        if not token:
            break
    if failures:
        raise WriteError(
            f"the finalizer {finalizer} was removed from {released} objects, but not from {len(failures)}: "
            f"{'; '.join(failures[:MAX_FAILURES_SHOWN])}"
        )
    return released
