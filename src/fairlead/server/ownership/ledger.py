"""What a write does to everyone's ownership."""

from collections.abc import Iterable
from typing import Any, Final

from fairlead.api.fields import FieldSet, path
from fairlead.api.fields.tries import LEAF, Trie, difference_of_roots, intersection_of_roots, union_of_roots, without
from fairlead.server.ownership.comparing import Comparison, compare
from fairlead.server.ownership.conformance import TypedError, conforms, problems
from fairlead.server.ownership.managed import Entry, Managed
from fairlead.server.ownership.reconciling import reconciled
from fairlead.server.ownership.schemas import Schemas, converted, served, shape_at
from fairlead.server.ownership.shapes import Shape

_IDENTITY: Final = "name namespace creationTimestamp selfLink uid clusterName generation managedFields resourceVersion"
_NO_ONES: Final = FieldSet.of(
    path("apiVersion"), path("kind"), path("metadata"), *[path("metadata", name) for name in _IDENTITY.split()]
)


class Changes:
    """How a write changed an object, at each version that someone owns fields at; less what the strategy resets."""

    def __init__(
        self,
        old: dict[str, Any],
        new: dict[str, Any],
        api_version: str,
        schemas: Schemas,
        reset: Trie,
        everywhere: bool,
    ) -> None:
        self._old, self._new, self._schemas = old, new, schemas
        self._reset, self._everywhere = reset, everywhere
        self._at: dict[str, Comparison] = {}
        self._touched: dict[str, Trie] = {}
        self._given = api_version
        self.any = bool(self._compared(api_version))

    def at(self, api_version: str) -> Comparison:
        """The comparison at a version that is served."""
        if api_version not in self._at:
            self._compared(api_version)
        return self._at[api_version]

    def touched(self, api_version: str) -> Trie:
        """What was added or modified."""
        known = self._touched.get(api_version)
        if known is None:
            changes = self.at(api_version)
            known = self._touched[api_version] = union_of_roots(changes.added, changes.modified)
        return known

    def _compared(self, api_version: str) -> Comparison:
        old, new = self._old, self._new
        if api_version != self._given:
            old = converted(self._schemas, old, api_version, "failed to convert old object: ")
            new = converted(self._schemas, new, api_version, "failed to convert new object: ")
        made = compare(served(self._schemas, api_version), old, new)
        self._at[api_version] = made
        if not self._reset or not (self._everywhere or api_version == self._given):
            return made
        kept = [without(trie, self._reset) for trie in (made.added, made.modified, made.removed)]
        self._at[api_version] = Comparison(*kept)
        return made


def checked(shape: Shape, obj: dict[str, Any], what: str, *, repeats: bool) -> None:
    """TypedError unless `obj` fits; `what` is how the message begins, around the object's names."""
    if conforms(shape, obj, repeats=repeats):
        return
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    group_version = api_version if "/" in api_version else f"/{api_version}"
    metadata = obj.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    who = f"{names.get('namespace') or ''}/{names.get('name') or ''}; {group_version}, Kind={kind}"
    raise TypedError(f"{what.format(who)}: {problems(shape, obj, repeats=repeats)}")


def current(managed: Managed, live: dict[str, Any], schemas: Schemas) -> dict[str, Entry]:
    """The entries by identity, in line with today's schemas; those of versions no longer served are gone."""
    out: dict[str, Entry] = {}
    for entry in managed:
        shape = shape_at(schemas, entry.api_version)
        if shape is None:
            continue
        converted(schemas, live, entry.api_version)
        if entry.fits is not shape:
            trie = reconciled(shape, entry.fields.trie)
            if trie is not entry.fields.trie:
                entry = entry.owning(FieldSet(trie))
            entry.fits = shape
        out[entry.identity] = entry
    return out


def conflicting(entries: Iterable[Entry], changes: Changes) -> list[tuple[Entry, FieldSet]]:
    """Whose fields were changed, and which."""
    out = []
    for entry in entries:
        touched = changes.touched(entry.api_version)
        if touched:
            fields = intersection_of_roots(entry.fields.trie, touched)
            if fields:
                out.append((entry, FieldSet(fields)))
    return out


def bereft(entry: Entry, changes: Changes) -> Entry:
    """The entry less what the write took from it or removed."""
    fields = entry.fields
    for gone in (changes.touched(entry.api_version), changes.at(entry.api_version).removed):
        if gone:
            left = difference_of_roots(fields.trie, gone)
            fields = fields if left is fields.trie else FieldSet(left)
    kept = entry.owning(fields)
    if kept is not entry:
        kept.fits = entry.fits
    return kept


def ownable(fields: Trie, reset: Trie = LEAF) -> FieldSet:
    """What of `fields` a writer may own: not what its strategy resets, nor what is no one's (names, versions, uid)."""
    return FieldSet(difference_of_roots(without(fields, reset) if reset else fields, _NO_ONES.trie))
