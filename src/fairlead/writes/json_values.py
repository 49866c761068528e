"""Check and convert Python values to JSON values before anything is sent."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec


def to_json(value: Any, where: str) -> Any:
    """Return the JSON value of anything that is not a map or a list. A set becomes a sorted list.

    Raises:
        ValueError: JSON cannot represent the value. `where` names the field in the message.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}, which JSON cannot represent: use a finite number")
    if isinstance(value, str):
        return require_text(value, where)
    if value is None or isinstance(value, int | float):
        return value
    try:
        return msgspec.to_builtins(value, str_keys=True, order="deterministic")
    except TypeError as error:
        raise ValueError(
            f"{where} is of type {type(value).__name__}, which JSON cannot represent ({error}): use maps, lists, text "
            "and numbers"
        ) from None


def require_text(value: Any, where: str) -> str:
    """Return the text. Raise ValueError if it is not text that JSON can represent.

    The message does not contain the value, because it may be a secret.
    """
    if not isinstance(value, str):
        raise ValueError(f"{where} must be text, but is of type {type(value).__name__}: quote it, or use str()")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(
            f"{where} contains a lone surrogate, which JSON cannot represent: decode it with errors='replace'"
        )
    return value


@contextmanager
def reject_cycles(where: str) -> Iterator[None]:
    """Raise ValueError if the conversion inside recurses without end, because a value contains itself."""
    try:
        yield
    except RecursionError:
        raise ValueError(f"{where} contains itself, or is nested without end: use a copy") from None
