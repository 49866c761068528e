"""Set the fields of an object that a user omitted."""

from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.writes.decide import decide
from fairlead.writes.draft import Draft
from fairlead.writes.tracked import TrackedMap
from fairlead.writes.writer import Writer


async def fill(writer: Writer, kind: Kind, obj: Object, defaults: dict[str, Any]) -> Object:
    """Set each field of `defaults` that the object lacks, and return the object.

    Maps are filled key by key. Lists and scalars are set as a whole.

    Guarantees:
        A value that someone sets first stays, even if it is false, empty or null: the write tests each absence.

    Raises:
        The same errors as `decide`.
    """

    def fill_draft(draft: Draft) -> None:
        _fill(draft, defaults)

    return (await decide(writer, kind, obj, fill_draft)).object


def _fill(target: TrackedMap, defaults: dict[str, Any]) -> None:
    for key, value in defaults.items():
        if isinstance(value, dict) and value:
            child = target.get_map(key)
            if child is not None and not target.is_null(key):
                _fill(child, value)
        else:
            target.set_if_missing(key, value)
