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
    """Return the pattern that the text describes: path elements, and `*` for any item of a list (`[*]`).

    The text is a path as error messages show it, with or without quotes around values. If a key contains dots, the text
    is a JSON pointer: `/metadata/annotations/a.b~1c`. Raises ValueError if it is neither.
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


def select_fields(owned: FieldSet, pattern: Path) -> FieldSet:
    """Return the paths of the set that match the pattern, and the paths below them.

    If the pattern names the key of a keyed list (`ports[*].name`), it also matches the items themselves, but not their
    other fields.
    """
    return owned.filter(lambda path: _matches(pattern, path))


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
