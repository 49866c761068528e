"""Quantities: 500m, 1Gi, 1e3. Parsed exactly, written in the one canonical form that a server answers with."""

from decimal import ROUND_UP, Context, Decimal
from functools import lru_cache
from typing import Final

_EXACT: Final = Context(prec=60)
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX: Final = {power: suffix for suffix, power in _BINARY.items()}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_NANO: Final = Decimal(1).scaleb(-9)
_MOST: Final = Decimal(2**63 - 1)

WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
WRONG_NUMBER: Final = "unable to parse numeric part of quantity"


class QuantityError(ValueError):
    """Not a quantity; the message is the real server's."""


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[Decimal, str]:
    """The exact value (rounded up to a billionth, capped at int64) and its format: binary, decimal or exponent."""
    number, suffix = _split(text)
    if suffix in _BINARY:
        value, form = number * (1024 ** _BINARY[suffix]), "binary"
    elif suffix in _DECIMAL:
        value, form = number.scaleb(_DECIMAL[suffix], _EXACT), "decimal"
    else:
        value, form = number.scaleb(_exponent(suffix), _EXACT), "exponent"
    if -_MOST <= value <= _MOST:
        return value.quantize(_NANO, ROUND_UP, _EXACT), form
    return _MOST.copy_sign(value), form


def canonical(text: str) -> str:
    """The same quantity as a server answers it. Raises QuantityError."""
    value, form = parse(text)
    return write(value, form)


def write(value: Decimal, form: str) -> str:
    if not value:
        return "0"
    if form == "binary" and abs(value) >= 1024 and value == value.to_integral_value():
        whole, power = int(value), 0
        while power < 6 and whole % 1024 == 0:
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY_SUFFIX.get(power, '')}"
    sign, digits, exponent = value.as_tuple()
    mantissa = int("".join(map(str, digits)))
    assert isinstance(exponent, int)
    while mantissa % 10 == 0:
        mantissa, exponent = mantissa // 10, exponent + 1
    mantissa, exponent = mantissa * 10 ** (exponent % 3), exponent - exponent % 3
    if form == "exponent":
        suffix = f"e{exponent}" if exponent else ""
    else:
        while exponent > 18:
            mantissa, exponent = mantissa * 1000, exponent - 3
        suffix = _DECIMAL_SUFFIX[exponent]
    return f"{'-' if sign else ''}{mantissa}{suffix}"


def _split(text: str) -> tuple[Decimal, str]:
    end = 1 if text[:1] in ("+", "-") else 0
    start, dots = end, 0
    while end < len(text) and ((text[end].isdecimal() and text[end].isascii()) or text[end] == "."):
        dots += text[end] == "."
        end += 1
    if not text or not set(text[end:]) <= set("eEinumkKMGTP+-0123456789"):
        raise QuantityError(WRONG_FORMAT)
    if dots > 1 or text[start:end] in ("", "."):
        raise QuantityError(WRONG_FORMAT if end == start else WRONG_NUMBER)
    return _EXACT.create_decimal(text[:end]), text[end:]


def _exponent(suffix: str) -> int:
    if suffix[0] not in "eE":
        raise QuantityError(WRONG_SUFFIX)
    try:
        return max(-1000, min(1000, int(suffix[1:])))
    except ValueError:
        raise QuantityError(WRONG_SUFFIX) from None
