"""Objects that others may edit: made once, then left alone but for named fields (see `decide(only=…)`)."""

from typing import Any

from fairlead.api.errors import AlreadyExists, NotFound, UnknownOutcome
from fairlead.api.objects import Object
from fairlead.writes.errors import ObjectDeleted
from fairlead.writes.payload import kind_in, scratch
from fairlead.writes.writer import Writer, told


async def create_only(writer: Writer, payload: dict[str, Any]) -> Object:
    """The object of that name: made from the payload if there was none, else just as it is found.

    Never overwrites, forces or adopts; whether what is found will do is for the caller to judge. One request where the
    local view does not know the name, none where it does.
    """
    kind = await writer.client.resolve(kind_in(payload))
    body = scratch(kind, payload)
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace")
    async with writer.turn(kind, name, namespace):
        if (known := writer.seen.peek(kind, name, namespace)) is not None:
            return known
        try:
            return writer.forget_removed(kind, await writer.client.create(body, field_manager=writer.manager))
        except (AlreadyExists, UnknownOutcome) as error:
            try:
                return await writer.client.get(kind, name, namespace)
            except NotFound:
                if isinstance(error, UnknownOutcome):
                    raise error from None
                raise ObjectDeleted(told(kind, name, namespace)) from error
