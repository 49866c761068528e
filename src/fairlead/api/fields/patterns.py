"""Fields as people name them: `spec.ports[name=http].port`, `spec.ports[*].nodePort`, `metadata.finalizers[=a.b/c]`."""

import json
import re
from typing import Any

from fairlead.api.fields.elements import Path, field, key, value
from fairlead.api.fields.fieldset import FieldSet

_ANY = "*"  # no element looks so
_VALUE = r'"(?:[^"\\]|\\.)*"|[^\[\],"]+'
_PAIR = rf"[^\[\],=\"]+=(?:{_VALUE})"
_PART = re.compile(rf"\.?(?P<field>[^.\[\]]+)|\[(?:(?P<any>\*)|=(?P<item>{_VALUE})|(?P<keys>{_PAIR}(?:,{_PAIR})*))\]")
_KEY = re.compile(rf"([^\[\],=\"]+)=({_VALUE})")


def parse(text: str) -> Path:
    """The pattern that the text names: elements, of which one may stand for every item of a list (`[*]`).

    As messages print paths, quotes around plain text left out or not. A pointer (`/metadata/annotations/a.b~1c`) where
    a key has dots in it. Raises ValueError for what is neither.
    """
    if text.startswith("/"):
        return tuple(field(part.replace("~1", "/").replace("~0", "~")) for part in text.split("/")[1:])
    parts, end = [], 0
    while end < len(text) and (found := _PART.match(text, end)):
        if found["field"]:
            parts.append(field(found["field"]))
        elif found["any"]:
            parts.append(_ANY)
        elif found["item"]:
            parts.append(value(_scalar(found["item"])))
        else:
            parts.append(key({name: _scalar(of) for name, of in _KEY.findall(found["keys"])}))
        end = found.end()
    if end < len(text) or not parts:
        raise ValueError(f"{text!r} names no field: write it like spec.replicas or spec.ports[name=http].port")
    return tuple(parts)


def selected(owned: FieldSet, pattern: Path) -> FieldSet:
    """The paths of the set that the pattern names, and those below them.

    An item of a keyed list goes with its key: who names `ports[*].name` names the items themselves too, though not
    the rest of them.
    """
    return owned.filter(lambda path: _names(pattern, path))


def _names(pattern: Path, path: Path) -> bool:
    if len(path) == len(pattern) - 1 and path and path[-1][0] == "k":
        return pattern[-1] in map(field, json.loads(path[-1][2:])) and _begins(path, pattern[:-1])
    return _begins(path, pattern)


def _begins(path: Path, pattern: Path) -> bool:
    return len(path) >= len(pattern) and all(
        want == have or (want == _ANY and have[0] in "kvi") for want, have in zip(pattern, path, strict=False)
    )


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
