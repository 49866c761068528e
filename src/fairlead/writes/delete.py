"""Delete exactly the object that was looked at."""

from fairlead.api.errors import Conflict, NotFound, UnknownOutcome
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object, is_removed
from fairlead.client.client import Propagation
from fairlead.writes.errors import ObjectChanged, ObjectDeleted
from fairlead.writes.writer import Writer, identified, told

# An answer that is lost twice is a connection to complain about.
ATTEMPTS = 2


async def delete(
    writer: Writer, kind: Kind, obj: Object, *, unchanged: bool = False, propagation: Propagation | None = None
) -> None:
    """Ask for the deletion of `obj`; finalizers may hold it for a while. Already gone is fine.

    Guard: uid, so that an object made anew under the name is left alone. `unchanged` adds the resourceVersion, for
    when what the object says was the reason to delete it: raises Changed if it says something else by now.
    """
    async with writer.turn(kind, obj.name, obj.namespace):
        await delete_in_turn(writer, kind, obj, unchanged=unchanged, propagation=propagation)


async def delete_in_turn(
    writer: Writer, kind: Kind, obj: Object, *, unchanged: bool = False, propagation: Propagation | None = None
) -> None:
    """`delete` for who holds the object's turn already."""
    identified(kind, obj)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            left = await writer.client.delete(
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
                live = await writer.live(kind, obj)
            except ObjectDeleted:
                return
            if unchanged and live.resource_version != obj.resource_version and not live.deleting:
                raise ObjectChanged(told(kind, obj.name, obj.namespace)) from error
            if live.deleting:
                return
            if attempt == ATTEMPTS:
                raise
        else:
            if left is None or is_removed(left, by_delete=True):
                writer.forget(kind, obj)
            return
