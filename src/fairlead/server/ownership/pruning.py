"""What an applier gives up by no longer mentioning it."""

from typing import Any, Final

from fairlead.api.fields.tries import LEAF, Trie, difference_of_roots, holds_root, intersection_of_roots, union_of_roots
from fairlead.server.ownership.extraction import applied
from fairlead.server.ownership.managed import Entry
from fairlead.server.ownership.merging import remove
from fairlead.server.ownership.reconciling import with_named_fields
from fairlead.server.ownership.schemas import Schemas, converted, served
from fairlead.server.ownership.shapes import Shape

_FAILED: Final = "failed to prune fields:"
_MERGED: Final = "failed to convert merged object"
_PRUNED: Final = "failed to convert pruned object"


def pruned(merged: dict[str, Any], last: Entry | None, entries: dict[str, Entry], mine: Entry, schemas: Schemas) -> Any:
    """`merged` without what the applier owned by its last apply, does not mention now, and no one else owns.

    An item that only plain writers added fields to goes with its applier; a field that no one owns stays unless it is
    inside such an item. `entries` hold `mine`, the applier's entry of now.
    """
    if last is None or not last.fields:
        return merged
    one_version = all(entry.api_version == last.api_version for entry in entries.values())
    if one_version and holds_root(mine.fields.trie, last.fields.trie):
        return merged  # nothing was given up
    at = last.api_version
    shape = served(schemas, at)
    whole = converted(schemas, merged, at, f"{_FAILED} {_MERGED} to last applied version: ")
    given_up = with_named_fields(shape, last.fields.trie)
    less = remove(shape, whole, given_up)
    less = _with_owned(whole, less, at, entries, schemas)
    less = converted(
        schemas, less, at, f"{_FAILED} failed add back dangling items: {_PRUNED} to last applied version: "
    )
    gone = difference_of_roots(_held(shape, whole), _held(shape, less))
    left = remove(shape, whole, intersection_of_roots(gone, given_up))
    return converted(schemas, left, mine.api_version, f"{_FAILED} ")


def _with_owned(whole: Any, less: Any, at: str, entries: dict[str, Entry], schemas: Schemas) -> Any:
    """`less` with what of `whole` anyone owns; first at the version at hand, because conversion may need it."""
    owned: dict[str, Trie] = {at: LEAF}
    for entry in entries.values():
        owned[entry.api_version] = union_of_roots(owned.get(entry.api_version, LEAF), entry.fields.trie)
    for version, fields in owned.items():
        if version == at and not fields:
            continue
        shape = served(schemas, version)
        failing = f"{_FAILED} failed add back owned items:"
        whole = converted(schemas, whole, version, f"{failing} {_MERGED} at version {version}: ")
        less = converted(schemas, less, version, f"{failing} {_PRUNED} at version {version}: ")
        kept = union_of_roots(_held(shape, less), with_named_fields(shape, fields))
        less = remove(shape, whole, difference_of_roots(_held(shape, whole), kept))
    return less


def _held(shape: Shape, value: Any) -> Trie:
    return with_named_fields(shape, applied(shape, value) or LEAF)
