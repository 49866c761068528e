"""Our own finalizer: put on before the first effect, taken off after the last. Others' entries are never touched."""

from contextlib import suppress

from fairlead.api.errors import ApiError, UnknownOutcome
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.writes.decide import decide
from fairlead.writes.draft import Draft
from fairlead.writes.errors import ObjectDeleted, ObjectDeleting, WriteError
from fairlead.writes.writer import Writer, told

PAGE = 500  # objects a list request: what kubectl asks for
MOST_NAMED = 10  # a message should remain one


async def add(writer: Writer, kind: Kind, obj: Object, finalizer: str) -> Object:
    """The object with our finalizer on it, acknowledged by the server. Nothing is sent when it is on already.

    Guard: uid, the list as seen, and that nobody is deleting the object. Raises Deleting, Gone, Replaced.
    """

    what = told(kind, obj.name, obj.namespace)  # `put_on` must not hold the object: what it holds is compared

    def put_on(draft: Draft) -> None:
        if draft.deleting:
            raise ObjectDeleting(what)
        finalizers = draft.metadata.get("finalizers")
        if finalizers is None:
            draft.metadata["finalizers"] = [finalizer]
        elif finalizer not in finalizers:
            finalizers.append(finalizer)

    return (await decide(writer, kind, obj, put_on)).object


async def remove(writer: Writer, kind: Kind, obj: Object, finalizer: str) -> None:
    """Our finalizer off the object. An object that is gone, or was made anew under that name, is done with.

    Guard: uid and the list as seen, so a foreign entry that came meanwhile survives.
    """

    def take_off(draft: Draft) -> None:
        finalizers = draft.metadata.get("finalizers")
        if finalizers and finalizer in finalizers:
            draft.metadata["finalizers"] = [other for other in finalizers if other != finalizer]

    with suppress(ObjectDeleted):
        await decide(writer, kind, obj, take_off)


async def release_all(writer: Writer, kind: Kind, finalizer: str, namespace: str | None = None) -> int:
    """Our finalizer off every object of the kind, for an uninstall: nothing would clean up after it any more.

    How many had it. All are tried: what failed is raised at the end. One that appears while this runs is not seen: stop
    the operator first.
    """
    released, failed, token = 0, list[str](), None
    while True:
        page = await writer.client.list(kind, namespace, limit=PAGE, continue_=token, metadata_only=True)
        for obj in page.items:
            if finalizer not in obj.finalizers:
                continue
            try:
                await remove(writer, kind, obj, finalizer)
            except (ApiError, WriteError, UnknownOutcome) as error:
                failed.append(f"{told(kind, obj.name, obj.namespace)}: {error}")
            else:
                released += 1
        token = page.continue_
        if not token:
            break
    if failed:
        raise WriteError(f"{released} released, {len(failed)} not: {'; '.join(failed[:MOST_NAMED])}")
    return released
