"""Fill in what a user left out, and only that."""

from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.writes.decide import decide
from fairlead.writes.draft import Draft
from fairlead.writes.view import MapView
from fairlead.writes.writer import Writer


async def fill(writer: Writer, kind: Kind, obj: Object, defaults: dict[str, Any]) -> Object:
    """The object with each field of `defaults` that it lacked. Maps are filled key by key; lists and scalars whole.

    Guard: each absence that is filled. A value that someone sets first, even to something falsy or to null, stays.
    """

    def fill_in(draft: Draft) -> None:
        _fill(draft, defaults)

    return (await decide(writer, kind, obj, fill_in)).object


def _fill(view: MapView, defaults: dict[str, Any]) -> None:
    for key, value in defaults.items():
        if isinstance(value, dict) and value:
            below = view.below(key)
            if below is not None and not view.null(key):
                _fill(below, value)
        else:
            view.fill(key, value)
