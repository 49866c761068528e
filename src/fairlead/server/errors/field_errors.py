"""Field errors: what is wrong with one field of an object, worded as the real server words it."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from fairlead.api import gojson


class Cause(NamedTuple):
    """One field error. `message` is what stands after the field in the text."""

    reason: str
    field: str
    message: str


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {detail}")


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueTypeInvalid", field, f"Invalid value: {shown(value)}: {detail}")


def forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", field, f"Forbidden: {detail}")


def not_supported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    listed = ", ".join(quoted(one) for one in supported)
    detail = f": supported values: {listed}" if listed else ""
    return Cause("FieldValueNotSupported", field, f"Unsupported value: {shown(value)}{detail}")


def duplicate(field: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")


def too_long(field: str, limit: int) -> Cause:
    told = f"may not be more than {limit} bytes" if limit >= 0 else "value is too long"
    return Cause("FieldValueTooLong", field, f"Too long: {told}")


def too_many(field: str, actual: int, limit: int) -> Cause:
    return Cause("FieldValueTooMany", field, f"Too many: {actual}: must have at most {limit} items")


def of_manager(field: str, manager: str) -> list[Cause]:
    """What is wrong with a field manager's name."""
    found = [too_long(field, 128)] if len(manager.encode()) > 128 else []
    if not manager.isprintable():
        odd = next(at for at, ch in enumerate(manager) if not ch.isprintable())
        found.append(invalid(field, manager, f"invalid character U+{ord(manager[odd]):04X} (at position {odd})"))
    return found


def shown(value: Any) -> str:
    """A value as a field error shows it: strings quoted, numbers as Go prints them, the rest as JSON."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return gojson.printed(value)
    return gojson.dumps(value).decode()


def go_text(value: Any) -> str:
    """A JSON value as Go's %v shows it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, float):
        return gojson.printed(value)
    return value if isinstance(value, str) else gojson.dumps(value).decode()


def quoted(text: str) -> str:
    """A string as Go's %q shows it."""
    out = ['"']
    for letter in text:
        code = ord(letter)
        if letter in ('"', "\\"):
            out.append("\\" + letter)
        elif code in _SHORT:
            out.append(_SHORT[code])
        elif letter.isprintable() or letter == " ":
            out.append(letter)
        elif code < 0x80:
            out.append(f"\\x{code:02x}")
        else:
            out.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    out.append('"')
    return "".join(out)


_SHORT = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
