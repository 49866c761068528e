"""Field patterns: `spec.ports[name=http].port`, `spec.ports[*].nodePort`, `metadata.finalizers[=a.b/c]`."""

import json
import re
from typing import Any

from fairlead.api.fields.field_set import FieldSet
from fairlead.api.fields.path_elements import Path, field, key, value

_ANY = "*"  # This is not an element.
_VALUE = r'"(?:[^"\\]|\\.)*"|[^\[\],"]+'
_PAIR = rf"[^\[\],=\"]+=(?:{_VALUE})"
_PART = re.compile(rf"\.?(?P<field>[^.\[\]]+)|\[(?:(?P<any>\*)|=(?P<item>{_VALUE})|(?P<keys>{_PAIR}(?:,{_PAIR})*))\]")
_KEY = re.compile(rf"([^\[\],=\"]+)=({_VALUE})")


def parse_pattern(text: str) -> Path:
    """Parse a field pattern to a tuple of path elements, with `*` for each `[*]` (any item of a list).

    `text` is a path as in error messages (`spec.ports[name=http].port`), or a JSON pointer for keys with dots
    (`/metadata/annotations/a.b~1c`). Quotes around values are optional. Raises ValueError for any other text.
    """
    if text.startswith("/"):
        return tuple(field(part.replace("~1", "/").replace("~0", "~")) for part in text.split("/")[1:])
    parts, end = [], 0
    while end < len(text) and (match := _PART.match(text, end)):
        if match["field"]:
            parts.append(field(match["field"]))
        elif match["any"]:
            parts.append(_ANY)
        elif match["item"]:
            parts.append(value(_parse_scalar(match["item"])))
        else:
            parts.append(key({name: _parse_scalar(text) for name, text in _KEY.findall(match["keys"])}))
        end = match.end()
    if end < len(text) or not parts:
        raise ValueError(f"{text!r} is not a field: write it like spec.replicas or spec.ports[name=http].port")
    return tuple(parts)


def select_fields(owned_fields: FieldSet, pattern: Path) -> FieldSet:
    """Return the paths of `owned_fields` that match `pattern`, and all paths of `owned_fields` below them.

    A pattern that ends with a key field of a keyed list (`ports[*].name`) also selects the paths of the list items, but
    not the other fields of the items.
    """
    return owned_fields.filter(lambda path: _matches(pattern, path))


def _matches(pattern: Path, path: Path) -> bool:
    if len(path) == len(pattern) - 1 and path and path[-1][0] == "k":
        return pattern[-1] in map(field, json.loads(path[-1][2:])) and _starts_with(path, pattern[:-1])
    return _starts_with(path, pattern)


def _starts_with(path: Path, pattern: Path) -> bool:
    return len(path) >= len(pattern) and all(
        expected == element or (expected == _ANY and element[0] in "kvi")
        for expected, element in zip(pattern, path, strict=False)
    )


def _parse_scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
