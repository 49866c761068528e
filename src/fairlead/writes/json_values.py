"""Convert Python values to JSON values, and reject values that JSON cannot represent."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec


def to_json(value: Any, field_name: str) -> Any:
    """Convert a Python value other than a map or list to a JSON value: a set to a sorted list, a date to text.

    Raises:
        ValueError: JSON cannot represent the value. `field_name` names the field in the message.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{field_name} is {value}, which JSON cannot represent: use a finite number")
    if isinstance(value, str):
        return require_text(value, field_name)
    if value is None or isinstance(value, int | float):
        return value
    try:
        return msgspec.to_builtins(value, str_keys=True, order="deterministic")
    except TypeError as error:
        raise ValueError(
            f"{field_name} is of type {type(value).__name__}, which JSON cannot represent ({error}): use maps, "
            "lists, text and numbers"
        ) from None


def require_text(value: Any, field_name: str) -> str:
    """Return `value` if it is a string that JSON can represent. Otherwise raise ValueError.

    The message does not contain the value, because it may be a secret.
    """
    if not isinstance(value, str):
        raise ValueError(f"{field_name} must be text, but is of type {type(value).__name__}: quote it, or use str()")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(
            f"{field_name} contains a lone surrogate, which JSON cannot represent: decode it with errors='replace'"
        )
    return value


@contextmanager
def reject_cycles(field_name: str) -> Iterator[None]:
    """Return a context manager that raises ValueError if the conversion inside it recurses without end.

    That happens if a value contains itself.
    """
    try:
        yield
    except RecursionError:
        raise ValueError(f"{field_name} contains itself, or is nested without end: use a copy") from None
