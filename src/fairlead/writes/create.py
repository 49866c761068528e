"""Create an object once, for objects that others may edit afterwards. Use `decide(only=…)` for later changes."""

from typing import Any

from fairlead.api.errors import AlreadyExists, NotFound, UnknownOutcome
from fairlead.api.objects import Object
from fairlead.writes.errors import ObjectDeleted
from fairlead.writes.payload import build_payload, kind_of_payload
from fairlead.writes.writer import Writer, describe_object


async def create_only(writer: Writer, payload: dict[str, Any]) -> Object:
    """Create the object if no object of that name exists, and return the object that exists then.

    Guarantees:
        An existing object is never overwritten, forced or adopted.
        A lost answer does not lead to a second object: the name is looked up instead.

    Does not guarantee:
        An existing object may have other contents, or belong to someone else. The caller must check that.

    Raises:
        ObjectDeleted: an object of that name existed, and was deleted before it could be read.
        UnknownOutcome: the answer was lost and no such object exists, so the create may still happen.
    """
    kind = await writer.client.resolve(kind_of_payload(payload))
    body = build_payload(kind, payload)
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace")
    async with writer.lock(kind, name, namespace):
        if (cached := writer.cache.peek(kind, name, namespace)) is not None:
            return cached
        try:
            return writer.forget_removed(kind, await writer.client.create(body, field_manager=writer.manager))
        except (AlreadyExists, UnknownOutcome) as error:
            try:
                return await writer.client.get(kind, name, namespace)
            except NotFound:
                if isinstance(error, UnknownOutcome):
                    raise error from None
                raise ObjectDeleted(describe_object(kind, name, namespace)) from error
