"""Delete an object by its uid, so that a recreated object of the same name stays."""

from fairlead.api.errors import Conflict, NotFound, UnknownOutcome
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object, is_removed
from fairlead.client.client import Propagation
from fairlead.writes.errors import ObjectChanged, ObjectDeleted
from fairlead.writes.writer import Writer, describe_object, require_uid

MAX_ATTEMPTS = 2  # After two lost answers the connection is at fault.


async def delete(
    writer: Writer, kind: Kind, obj: Object, *, unchanged: bool = False, propagation: Propagation | None = None
) -> None:
    """Delete `obj`. Return without error if it no longer exists.

    Guarantees:
        The uid is a precondition, so an object that was recreated under the name is not deleted.
        With `unchanged=True` the resourceVersion is a precondition too. Use that if the contents of the object were the
            reason to delete it.

    Does not guarantee:
        The object may still exist afterwards, because finalizers can delay its removal.

    Raises:
        ObjectChanged: `unchanged` is true and the object changed since it was read.
    """
    async with writer.lock(kind, obj.name, obj.namespace):
        await delete_locked(writer, kind, obj, unchanged=unchanged, propagation=propagation)


async def delete_locked(
    writer: Writer, kind: Kind, obj: Object, *, unchanged: bool = False, propagation: Propagation | None = None
) -> None:
    """Delete the object like `delete`, for a caller that already holds the lock of the object."""
    require_uid(kind, obj)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            remaining = await writer.client.delete(
                kind,
                obj.name,
                obj.namespace,
                uid=obj.uid,
                resource_version=obj.resource_version if unchanged else None,
                propagation=propagation,
            )
        except NotFound:
            writer.observe_removal(kind, obj)
            return
        except (Conflict, UnknownOutcome) as error:
            try:
                live = await writer.read_live(kind, obj)
            except ObjectDeleted:
                return
            if unchanged and live.resource_version != obj.resource_version and not live.deleting:
                raise ObjectChanged(describe_object(kind, obj.name, obj.namespace)) from error
            if live.deleting:
                return
            if attempt == MAX_ATTEMPTS:
                raise
        else:
            if remaining is None or is_removed(remaining, is_deletion=True):
                writer.forget(kind, obj)
            return
