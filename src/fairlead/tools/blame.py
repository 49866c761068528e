"""Find the owners of each field of an object from its managedFields."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.api.fields import FieldSet, format_path, key, union, value
from fairlead.api.redaction import redact

# Text that needs no quotes in YAML, because it cannot be mistaken for another type.
_BARE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(:[A-Za-z0-9_./-]+)*")
_TYPED = re.compile(r"(?i)null|true|false|yes|no|on|off|y|n|[.+-]?(inf|nan)")


@dataclass(frozen=True, slots=True)
class Owner:
    """The field manager, operation, subresource and time of a managedFields entry."""

    manager: str
    operation: str
    subresource: str
    time: str

    def __str__(self) -> str:
        subresource_suffix = f" of {self.subresource}" if self.subresource else ""
        return f"{self.manager} ({self.operation}{subresource_suffix}{', ' + self.time if self.time else ''})"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an object as YAML. A line that ends a field has the path and the owners of that field."""

    text: str
    path: str = ""
    owners: tuple[Owner, ...] = ()


@dataclass(frozen=True, slots=True)
class Fight:
    """Field managers that conflict with each other, the fields, and the fix."""

    managers: tuple[str, ...]
    fields: tuple[str, ...]
    why: str


def blame(obj: Mapping[str, Any]) -> list[Line]:
    """Return the object as YAML lines with the owners of each field. managedFields and Secret values are left out."""
    entries = [(_build_owner(entry), entry.get("fieldsV1") or {}) for entry in _get_managed_fields(obj)]
    metadata = {name: item for name, item in (obj.get("metadata") or {}).items() if name != "managedFields"}
    return list(_map(redact({**obj, "metadata": metadata}), entries, "", ""))


def fights(obj: Mapping[str, Any]) -> list[Fight]:
    """Return the conflicts between the object's field managers.

    The result contains only what the current managedFields show, not earlier conflicts.
    """
    sets = [(_build_owner(entry), FieldSet.decode(entry.get("fieldsV1"))) for entry in _get_managed_fields(obj)]
    conflicts = []
    for position, (owner, fields) in enumerate(sets):
        for other, other_fields in sets[position + 1 :]:
            shared = (fields & other_fields).leaves()
            if not shared:
                continue
            names = tuple(format_path(path) for path in shared)
            if (owner.manager, owner.subresource) == (other.manager, other.subresource):
                advice = (
                    "one manager, Update and Apply: leaving a field out of the apply does not remove it; migrate it"
                )
                conflicts.append(Fight((str(owner), str(other)), names, advice))
            elif "Apply" in (owner.operation, other.operation):
                advice = (
                    "both own it: neither can remove it, and a change by one conflicts with the other or overwrites it"
                )
                conflicts.append(Fight((str(owner), str(other)), names, advice))
    for owner, fields in sets:
        if hidden := [path for path in fields.leaves() if path[0] == "f:stringData"]:
            advice = "stored as data, without an owner: leaving a key out does not remove it; apply data instead"
            conflicts.append(Fight((str(owner),), tuple(map(format_path, hidden)), advice))
    unowned = union(fields for owner, fields in sets if owner.manager in ("before-first-apply", "ancient-changes"))
    if unowned:
        advice = "no current writer owns it: no apply can remove it; migrate it to the manager that should own it"
        conflicts.append(
            Fight(("before-first-apply or ancient-changes",), tuple(map(format_path, unowned.leaves())), advice)
        )
    return conflicts


_Entries = list[tuple[Owner, dict[str, Any]]]


def _map(node: Mapping[str, Any], entries: _Entries, indent: str, path: str, first: str = "") -> Iterator[Line]:
    for name, item in node.items():
        yield from _format_field(
            first or indent,
            indent,
            _format_scalar(name) + ":",
            item,
            _get_entries_below(entries, f"f:{name}"),
            f"{path}.{name}",
        )
        first = ""


def _list(node: list[Any], entries: _Entries, indent: str, path: str) -> Iterator[Line]:
    for position, item in enumerate(node):
        element = _find_element(item, entries) or f"i:{position}"
        inner_entries, item_path = _get_entries_below(entries, element), path + format_path((element,))
        if isinstance(item, dict) and item:
            yield from _format_item(item, inner_entries, indent, item_path)
        else:
            yield from _format_field(indent, indent, "-", item, inner_entries, item_path)


def _format_item(node: dict[str, Any], entries: _Entries, indent: str, path: str) -> Iterator[Line]:
    owners = _list_owners(entries) if _is_one_value(entries) else ()
    lines = list(_map(node, [] if owners else entries, indent + "  ", path, first=indent + "- "))
    yield Line(lines[0].text, path, owners) if owners else lines[0]
    yield from lines[1:]


def _format_field(first: str, indent: str, label: str, item: Any, entries: _Entries, path: str) -> Iterator[Line]:
    if not isinstance(item, dict | list) or not item:
        yield Line(f"{first}{label} {_format_scalar(item)}", path, _list_owners(entries))
        return
    owners = _list_owners(entries) if _is_one_value(entries) else ()
    yield Line(f"{first}{label}", path if owners else "", owners)
    inner_entries = [] if owners else entries  # Owned as one value: its content has no owners of its own.
    if isinstance(item, dict):
        yield from _map(item, inner_entries, indent + "  ", path)
    else:
        yield from _list(item, inner_entries, indent, path)


def _is_one_value(entries: _Entries) -> bool:
    """Return whether all owners own the field as one value, and none of them only fields inside it."""
    return bool(entries) and not any(fields.keys() - {"."} for _, fields in entries)


def _list_owners(entries: _Entries) -> tuple[Owner, ...]:
    return tuple(owner for owner, fields in entries if not fields or "." in fields)


def _get_entries_below(entries: _Entries, element: str) -> _Entries:
    return [(owner, fields[element]) for owner, fields in entries if element in fields]


def _find_element(item: Any, entries: _Entries) -> str | None:
    """Return the path element of a list item in the entries, such as `k:{"name":"app"}`, or None."""
    for _, fields in entries:
        for element in fields:
            if element[:2] == "v:" and not isinstance(item, dict | list) and element == value(item):
                return element
            if element[:2] == "k:" and isinstance(item, dict):
                names = json.loads(element[2:])
                if all(name in item for name in names) and element == key({name: item[name] for name in names}):
                    return element
    return None


def _get_managed_fields(obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list((obj.get("metadata") or {}).get("managedFields") or ())


def _build_owner(entry: Mapping[str, Any]) -> Owner:
    names = ("manager", "operation", "subresource", "time")
    return Owner(*[str(entry.get(name) or "") for name in names])


def _format_scalar(item: Any) -> str:
    """Return a scalar or an empty map or list as YAML on one line. Text that needs quotes is written as JSON."""
    if isinstance(item, str) and _BARE.fullmatch(item) and not _TYPED.fullmatch(item):
        return item
    return json.dumps(item, ensure_ascii=not (isinstance(item, str) and item.isprintable()))
