"""JSON patch as the real server's library applies it, with its liberties: replace adds, copy of nothing writes null,
`test` of a missing key against null passes, "-1" is the last item, and values are compared by their encoded bytes."""

import re
from typing import Any

import msgspec

from fairlead.api import gojson
from fairlead.server.golang import encoding

Operation = dict[str, msgspec.Raw]
_decoder = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None] | None)
_maps = msgspec.json.Decoder(dict[str, msgspec.Raw])
_lists = msgspec.json.Decoder(list[msgspec.Raw])
_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
_ABSENT: Any = object()
MAX_COPIED = 3 * 1024 * 1024  # bytes that the copies of one patch may come to


class CannotApply(Exception):
    """The patch does not fit the object, or a test failed."""


def apply(document: dict[str, Any], operations: list[Operation]) -> Any:
    """The patched document; the given one is not changed."""
    root: list[Any] = [document]
    ours: set[int] = set()  # ids of containers that are ours to change; they live as long as root
    copied = 0
    for operation in operations:
        copied += _apply_operation(root, operation, ours)
        if copied > MAX_COPIED:
            raise CannotApply(f"Unable to complete the copy, the accumulated size of copies is {copied}")
    return _to_plain(root[0], ours)


class _RawScalar:
    """A scalar that the patch brought, as the patch spells it: a later `test` compares with that."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


_NULL = _RawScalar(
    b"null"
)  # that an operation gave: it equals a null only where it is tested by itself, and no copy does


def _decode_value(raw: bytes, ours: set[int]) -> Any:
    """A value of the patch, its containers ours to change."""
    made: Any
    if raw[:1] == b"{":
        made = {key: _decode_value(_text_of(item), ours) for key, item in _maps.decode(raw).items()}
    elif raw[:1] == b"[":
        made = [_decode_value(_text_of(item), ours) for item in _lists.decode(raw)]
    else:
        return None if raw == b"null" else _RawScalar(raw)
    ours.add(id(made))
    return made


def _text_of(raw: msgspec.Raw) -> bytes:
    return bytes(raw).strip()


def _to_plain(value: Any, ours: set[int]) -> Any:
    """The value with what the patch spelled decoded. What is not ours holds nothing of it."""
    if type(value) is _RawScalar:
        return encoding.decode(value.raw)[0]
    if id(value) in ours and isinstance(value, dict):
        return {key: _to_plain(item, ours) for key, item in value.items()}
    if id(value) in ours and isinstance(value, list):
        return [_to_plain(item, ours) for item in value]
    return value


def _copy(value: Any, ours: set[int]) -> Any:
    """A copy of what is ours, which Go makes by encoding it."""
    made: Any
    if type(value) is _RawScalar:
        return _RawScalar(gojson.escaped(value.raw))
    if id(value) not in ours:
        return value
    if isinstance(value, dict):
        made = {key: None if item is _NULL else _copy(item, ours) for key, item in value.items()}
    else:
        made = [None if item is _NULL else _copy(item, ours) for item in value]
    ours.add(id(made))
    return made


def decode(body: bytes) -> list[Operation]:
    """A patch's operations with their values still encoded. Raises encoding.BadJSON for what is not such a list."""
    try:
        return [each or {} for each in _decoder.decode(encoding.replace_invalid_characters(body)) or ()]
    except msgspec.DecodeError:
        raise encoding.BadJSON(_type_error(body, "jsonpatch.Patch", "jsonpatch.Operation")) from None


def check_fields(body: bytes) -> list[str]:
    """What is odd about a patch that is a list of operations; raises encoding.BadJSON for one that is none.

    Beside what `decode` minds, the types of op, path and from, and numbers that no float holds.
    """
    try:
        value, duplicates = encoding.decode(body)
    except encoding.NumberTooLarge as error:
        raise encoding.BadJSON(str(error).replace("Go value", "Go struct field jsonPatchOp.value")) from None
    if wrong := _type_error(body, "[]handlers.jsonPatchOp", "handlers.jsonPatchOp"):
        raise encoding.BadJSON(wrong)
    given = [each for each in value or () if each]
    for each in given:
        for key, item in each.items():
            if key in _TEXTS and item is not None and not isinstance(item, str):
                into = f"Go struct field jsonPatchOp.{key} of type string"
                raise encoding.BadJSON(f"json: cannot unmarshal {encoding.json_type_name(item)} into {into}")
    if not duplicates and all(each.keys() <= _FIELDS for each in given):
        return []
    return [f"json patch {told}" for told in encoding.find_unexpected_fields(body, _FIELDS)]


_TEXTS = ("op", "path", "from")
_FIELDS = frozenset((*_TEXTS, "value"))


def _type_error(body: bytes, whole: str, each: str) -> str:
    """Why a JSON text is no list of maps, where nulls stand for either; empty where it is one."""
    value, _ = encoding.decode(body)
    if value is not None and not isinstance(value, list):
        return f"json: cannot unmarshal {encoding.json_type_name(value)} into Go value of type {whole}"
    for item in value or ():
        if item is not None and not isinstance(item, dict):
            return f"json: cannot unmarshal {encoding.json_type_name(item)} into Go value of type {each}"
    return ""


def _apply_operation(root: list[Any], operation: Operation, ours: set[int]) -> int:
    """Carry out an operation; how many bytes it copied."""
    kind = _text(operation, "op") or "unknown"
    if kind not in ("add", "remove", "replace", "move", "copy", "test"):
        raise CannotApply(f"Unexpected kind: {kind}")
    path = _text(operation, "path")
    if path is None:
        raise CannotApply(f"{kind} operation failed to decode path: missing value")
    if kind == "test":
        _test(root, path, operation, ours)
    elif kind == "replace" and path == "":
        root[0] = _value(operation, ours)
    elif kind in ("add", "replace"):
        parent, key = _parent(root, path, kind, ours)
        (_add if kind == "add" else _replace)(parent, key, _value(operation, ours), path)
    elif kind == "remove":
        parent, key = _parent(root, path, kind, ours)
        _remove(parent, key, path)
    else:
        return _move_or_copy(root, kind, path, operation, ours)
    return 0


def _move_or_copy(root: list[Any], kind: str, path: str, operation: Operation, ours: set[int]) -> int:
    source = _text(operation, "from")
    if source is None:
        raise CannotApply(f"{kind} operation failed to decode from: operation, missing from field: missing value")
    parent, key = _parent(root, source, kind, ours, "from path")
    value = _get(parent, key, source)
    if kind == "move":
        _remove(parent, key, source)
    if value is _ABSENT:
        value = None
    target, name = _parent(root, path, kind, ours, "destination path")
    if kind == "copy" and isinstance(value, dict | list):
        value = _copy(_get(parent, key, source), ours)  # as it is now: the way to the destination may lead into it
    elif kind == "copy":
        value = _copy(value, ours)
    _add(target, name, value, path)
    return len(gojson.dumps(_to_plain(value, ours))) if kind == "copy" and value is not None else 0


def _text(operation: Operation, key: str) -> str | None:
    raw = operation.get(key)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return "unknown" if key == "op" else None


def _value(operation: Operation, ours: set[int]) -> Any:
    raw = operation.get("value")
    if raw is None:
        return None
    made = _decode_value(_text_of(raw), ours)
    return _NULL if made is None else made


def _parent(root: list[Any], path: str, kind: str, ours: set[int], called: str = "path") -> tuple[Any, str]:
    """The container that a path's last part is in, ours to change, and that part."""
    parts = path.split("/")
    if len(parts) < 2:
        raise CannotApply(f'{kind} operation does not apply: doc is missing {called}: "{path}": missing value')
    holder: Any = root
    at: Any = 0
    for part in ["", *parts[1:-1]][1:]:
        current = _copy_before_write(holder, at, ours)
        following = _get(current, _unescape(part), path)
        if not isinstance(following, dict | list):
            raise CannotApply(f'{kind} operation does not apply: doc is missing {called}: "{path}": missing value')
        holder, at = current, (_index(current, _unescape(part), path) if isinstance(current, list) else _unescape(part))
    return _copy_before_write(holder, at, ours), _unescape(parts[-1])


def _copy_before_write(holder: Any, at: Any, ours: set[int]) -> Any:
    current = holder[at]
    if id(current) not in ours and isinstance(current, dict | list):
        current = current.copy()
        ours.add(id(current))
        holder[at] = current
    return current


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _index(items: list[Any], key: str, path: str, limit: int | None = None) -> int:
    if not _NUMBER.match(key):
        raise CannotApply(f"error in patch for path: '{path}': strconv.Atoi: parsing \"{key}\": invalid syntax")
    index = int(key)
    size = len(items) if limit is None else limit
    if not -size <= index < size:
        raise CannotApply(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + size if index < 0 else index


def _get(container: Any, key: str, path: str) -> Any:
    if isinstance(container, list):
        return container[_index(container, key, path)]
    return container.get(key, _ABSENT) if isinstance(container, dict) else _ABSENT


def _add(container: Any, key: str, value: Any, path: str) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(container, key, path, len(container) + 1), value)


def _replace(container: Any, key: str, value: Any, path: str) -> None:
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_index(container, key, path)] = value


def _remove(container: Any, key: str, path: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise CannotApply(
                f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
            )
        del container[key]
    else:
        del container[_index(container, key, path)]


def _test(root: list[Any], path: str, operation: Operation, ours: set[int]) -> None:
    """Compare; on the way containers are opened as by a change, which is seen where a refusal shows the document."""
    failed = CannotApply(f"testing value {path} failed: test failed")
    if path == "":
        if not _equals_raw(root[0], operation.get("value", msgspec.Raw(b"null"))):
            raise failed
        return
    parent, key = _parent(root, path, "test", ours)
    value = _get(parent, key, path)
    raw = operation.get("value")
    if value is None or value is _ABSENT:
        if raw is not None and bytes(raw).strip() != b"null":
            raise failed
    elif value is _NULL:
        if raw is None or _text_of(raw) != b"null":
            raise failed
    elif raw is None or not _equals_raw(value, raw):
        raise failed


def _equals_raw(value: Any, raw: msgspec.Raw) -> bool:
    """Whether a value, as Go encodes it, is what the patch spells; maps and lists are compared part by part."""
    text = _text_of(raw)
    if isinstance(value, dict):
        if text[:1] != b"{":
            return False
        given = _maps.decode(text)
        return given.keys() == value.keys() and all(_equals_raw(v, given[k]) for k, v in value.items())
    if isinstance(value, list):
        if text[:1] != b"[":
            return False
        items = _lists.decode(text)
        return len(items) == len(value) and all(_equals_raw(v, r) for v, r in zip(value, items, strict=True))
    if type(value) is _RawScalar:
        return value.raw == text != b"null"
    return gojson.dumps(value) == text
