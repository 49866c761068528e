"""JSON patch as the library of a real server applies it.

That library differs from RFC 6902: `replace` also adds, `copy` of a missing value writes null, `test` of a missing key
against null passes, "-1" is the last item, and `test` compares the encoded bytes.
"""

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
MAX_COPIED = 3 * 1024 * 1024  # The total size in bytes of all copies that one patch makes.


class CannotApply(Exception):
    """Raised if an operation does not fit the object, or if a `test` failed."""


def apply(document: dict[str, Any], operations: list[Operation]) -> Any:
    """Return the patched document. `document` is not changed."""
    root: list[Any] = [document]
    owned_ids: set[int] = (
        set()
    )  # The ids of the containers that this call created and may change; root keeps them alive.
    copied = 0
    for operation in operations:
        copied += _apply_operation(root, operation, owned_ids)
        if copied > MAX_COPIED:
            raise CannotApply(f"Unable to complete the copy, the accumulated size of copies is {copied}")
    return _to_plain(root[0], owned_ids)


class _RawScalar:
    """A scalar of the patch that keeps its bytes, because a later `test` compares those bytes."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


# A null that an operation set. It equals null only if `test` names it directly, and a copy of it is a plain null.
_NULL = _RawScalar(b"null")


def _decode_value(raw: bytes, owned_ids: set[int]) -> Any:
    """Decode a value of the patch, and add the ids of its maps and lists to `owned_ids`."""
    result: Any
    if raw[:1] == b"{":
        result = {key: _decode_value(_get_text(item), owned_ids) for key, item in _maps.decode(raw).items()}
    elif raw[:1] == b"[":
        result = [_decode_value(_get_text(item), owned_ids) for item in _lists.decode(raw)]
    else:
        return None if raw == b"null" else _RawScalar(raw)
    owned_ids.add(id(result))
    return result


def _get_text(raw: msgspec.Raw) -> bytes:
    return bytes(raw).strip()


def _to_plain(value: Any, owned_ids: set[int]) -> Any:
    """Return `value` with its raw scalars decoded. Only maps and lists in `owned_ids` can hold raw scalars."""
    if type(value) is _RawScalar:
        return encoding.decode(value.raw)[0]
    if id(value) in owned_ids and isinstance(value, dict):
        return {key: _to_plain(item, owned_ids) for key, item in value.items()}
    if id(value) in owned_ids and isinstance(value, list):
        return [_to_plain(item, owned_ids) for item in value]
    return value


def _copy_value(value: Any, owned_ids: set[int]) -> Any:
    """Copy the parts of a value that are in `owned_ids`. Go copies by encoding, which escapes raw scalars."""
    result: Any
    if type(value) is _RawScalar:
        return _RawScalar(gojson.escape(value.raw))
    if id(value) not in owned_ids:
        return value
    if isinstance(value, dict):
        result = {key: None if item is _NULL else _copy_value(item, owned_ids) for key, item in value.items()}
    else:
        result = [None if item is _NULL else _copy_value(item, owned_ids) for item in value]
    owned_ids.add(id(result))
    return result


def decode(body: bytes) -> list[Operation]:
    """Return the operations of a patch with their values still encoded.

    Raises encoding.BadJSON if the body is not a list of operations.
    """
    try:
        return [operation or {} for operation in _decoder.decode(encoding.replace_invalid_characters(body)) or ()]
    except msgspec.DecodeError:
        raise encoding.BadJSON(_find_type_error(body, "jsonpatch.Patch", "jsonpatch.Operation")) from None


def check_fields(body: bytes) -> list[str]:
    """Return a message for each unknown or duplicate field in the operations of a patch.

    Raises encoding.BadJSON if the body is not a list of operations, if op, path or from is not a string, or if a number
    is too large for a float.
    """
    try:
        value, duplicates = encoding.decode(body)
    except encoding.NumberTooLarge as error:
        raise encoding.BadJSON(str(error).replace("Go value", "Go struct field jsonPatchOp.value")) from None
    if error_message := _find_type_error(body, "[]handlers.jsonPatchOp", "handlers.jsonPatchOp"):
        raise encoding.BadJSON(error_message)
    operations = [operation for operation in value or () if operation]
    for operation in operations:
        for key, item in operation.items():
            if key in _STRING_FIELDS and item is not None and not isinstance(item, str):
                into = f"Go struct field jsonPatchOp.{key} of type string"
                raise encoding.BadJSON(f"json: cannot unmarshal {encoding.json_type_name(item)} into {into}")
    if not duplicates and all(operation.keys() <= _FIELDS for operation in operations):
        return []
    return [f"json patch {message}" for message in encoding.find_unexpected_fields(body, _FIELDS)]


_STRING_FIELDS = ("op", "path", "from")
_FIELDS = frozenset((*_STRING_FIELDS, "value"))


def _find_type_error(body: bytes, list_type: str, item_type: str) -> str:
    """Return Go's error message if a JSON text is not a list of maps, else "".

    Null may stand for the list and its items.
    """
    value, _ = encoding.decode(body)
    if value is not None and not isinstance(value, list):
        return f"json: cannot unmarshal {encoding.json_type_name(value)} into Go value of type {list_type}"
    for item in value or ():
        if item is not None and not isinstance(item, dict):
            return f"json: cannot unmarshal {encoding.json_type_name(item)} into Go value of type {item_type}"
    return ""


def _apply_operation(root: list[Any], operation: Operation, owned_ids: set[int]) -> int:
    """Apply one operation of the patch to the document in `root`. Return how many bytes it copied."""
    kind = _get_string(operation, "op") or "unknown"
    if kind not in ("add", "remove", "replace", "move", "copy", "test"):
        raise CannotApply(f"Unexpected kind: {kind}")
    path = _get_string(operation, "path")
    if path is None:
        raise CannotApply(f"{kind} operation failed to decode path: missing value")
    if kind == "test":
        _test_value(root, path, operation, owned_ids)
    elif kind == "replace" and path == "":
        root[0] = _get_value(operation, owned_ids)
    elif kind in ("add", "replace"):
        parent, key = _find_parent(root, path, kind, owned_ids)
        (_add_item if kind == "add" else _replace_item)(parent, key, _get_value(operation, owned_ids), path)
    elif kind == "remove":
        parent, key = _find_parent(root, path, kind, owned_ids)
        _remove_item(parent, key, path)
    else:
        return _move_or_copy(root, kind, path, operation, owned_ids)
    return 0


def _move_or_copy(root: list[Any], kind: str, path: str, operation: Operation, owned_ids: set[int]) -> int:
    source = _get_string(operation, "from")
    if source is None:
        raise CannotApply(f"{kind} operation failed to decode from: operation, missing from field: missing value")
    parent, key = _find_parent(root, source, kind, owned_ids, "from path")
    value = _get_item(parent, key, source)
    if kind == "move":
        _remove_item(parent, key, source)
    if value is _ABSENT:
        value = None
    target, name = _find_parent(root, path, kind, owned_ids, "destination path")
    if kind == "copy" and isinstance(value, dict | list):
        value = _copy_value(
            _get_item(parent, key, source), owned_ids
        )  # Copy it again: the destination may be inside it.
    elif kind == "copy":
        value = _copy_value(value, owned_ids)
    _add_item(target, name, value, path)
    return len(gojson.dumps(_to_plain(value, owned_ids))) if kind == "copy" and value is not None else 0


def _get_string(operation: Operation, key: str) -> str | None:
    raw = operation.get(key)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return "unknown" if key == "op" else None


def _get_value(operation: Operation, owned_ids: set[int]) -> Any:
    raw = operation.get("value")
    if raw is None:
        return None
    value = _decode_value(_get_text(raw), owned_ids)
    return _NULL if value is None else value


def _find_parent(
    root: list[Any], path: str, kind: str, owned_ids: set[int], path_name: str = "path"
) -> tuple[Any, str]:
    """Return the map or list that holds the last part of a path, and that part. Add the container to `owned_ids`."""
    pointer_parts = path.split("/")
    if len(pointer_parts) < 2:
        raise CannotApply(f'{kind} operation does not apply: doc is missing {path_name}: "{path}": missing value')
    container: Any = root
    at: Any = 0
    for part in ["", *pointer_parts[1:-1]][1:]:
        current = _copy_before_write(container, at, owned_ids)
        following = _get_item(current, _unescape(part), path)
        if not isinstance(following, dict | list):
            raise CannotApply(f'{kind} operation does not apply: doc is missing {path_name}: "{path}": missing value')
        container, at = (
            current,
            (_parse_index(current, _unescape(part), path) if isinstance(current, list) else _unescape(part)),
        )
    return _copy_before_write(container, at, owned_ids), _unescape(pointer_parts[-1])


def _copy_before_write(container: Any, at: Any, owned_ids: set[int]) -> Any:
    current = container[at]
    if id(current) not in owned_ids and isinstance(current, dict | list):
        current = current.copy()
        owned_ids.add(id(current))
        container[at] = current
    return current


def _unescape(pointer_part: str) -> str:
    return pointer_part.replace("~1", "/").replace("~0", "~")


def _parse_index(items: list[Any], key: str, path: str, limit: int | None = None) -> int:
    if not _NUMBER.match(key):
        raise CannotApply(f"error in patch for path: '{path}': strconv.Atoi: parsing \"{key}\": invalid syntax")
    index = int(key)
    size = len(items) if limit is None else limit
    if not -size <= index < size:
        raise CannotApply(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + size if index < 0 else index


def _get_item(container: Any, key: str, path: str) -> Any:
    if isinstance(container, list):
        return container[_parse_index(container, key, path)]
    return container.get(key, _ABSENT) if isinstance(container, dict) else _ABSENT


def _add_item(container: Any, key: str, value: Any, path: str) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_parse_index(container, key, path, len(container) + 1), value)


def _replace_item(container: Any, key: str, value: Any, path: str) -> None:
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_parse_index(container, key, path)] = value


def _remove_item(container: Any, key: str, path: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise CannotApply(
                f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
            )
        del container[key]
    else:
        del container[_parse_index(container, key, path)]


def _test_value(root: list[Any], path: str, operation: Operation, owned_ids: set[int]) -> None:
    """Raise CannotApply unless the value at `path` equals that of the operation.

    Containers on the path are added to `owned_ids`, which changes how an error shows the document.
    """
    test_failure = CannotApply(f"testing value {path} failed: test failed")
    if path == "":
        if not _equals_raw(root[0], operation.get("value", msgspec.Raw(b"null"))):
            raise test_failure
        return
    parent, key = _find_parent(root, path, "test", owned_ids)
    value = _get_item(parent, key, path)
    raw = operation.get("value")
    if value is None or value is _ABSENT:
        if raw is not None and bytes(raw).strip() != b"null":
            raise test_failure
    elif value is _NULL:
        if raw is None or _get_text(raw) != b"null":
            raise test_failure
    elif raw is None or not _equals_raw(value, raw):
        raise test_failure


def _equals_raw(value: Any, raw: msgspec.Raw) -> bool:
    """Return whether Go's encoding of a value has these bytes. Maps and lists are compared item by item."""
    text = _get_text(raw)
    if isinstance(value, dict):
        if text[:1] != b"{":
            return False
        members = _maps.decode(text)
        return members.keys() == value.keys() and all(_equals_raw(v, members[k]) for k, v in value.items())
    if isinstance(value, list):
        if text[:1] != b"[":
            return False
        items = _lists.decode(text)
        return len(items) == len(value) and all(_equals_raw(v, r) for v, r in zip(value, items, strict=True))
    if type(value) is _RawScalar:
        return value.raw == text != b"null"
    return gojson.dumps(value) == text
