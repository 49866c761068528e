"""What JSON can say, told before anything is sent."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec


def scalar(value: Any, where: str) -> Any:
    """What JSON has for a value that is no map and no list; for a set its items in order, so that equal ones agree."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}, which is not a number that JSON can hold")
    if isinstance(value, str):
        return text(value, where)
    if value is None or isinstance(value, int | float):
        return value
    try:
        return msgspec.to_builtins(value, str_keys=True, order="deterministic")
    except TypeError as error:
        said = f"{where} is of type {type(value).__name__}, which JSON cannot say ({error})"
        raise ValueError(f"{said}: give maps, lists, text and numbers") from None


def text(value: Any, where: str) -> str:
    """The text; raises where it is none that JSON has, and does not show it, as it may be a secret."""
    if not isinstance(value, str):
        raise ValueError(
            f"{where} is no text, but of type {type(value).__name__}: put it in quotes, or str() around it"
        )
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{where} has half a character in it, which JSON cannot say: decode it with errors='replace'")
    return value


@contextmanager
def finite(where: str) -> Iterator[None]:
    """Raise where something has itself in it, which no JSON can say."""
    try:
        yield
    except RecursionError:
        raise ValueError(f"{where} has itself in it, or no end: put a copy there") from None
