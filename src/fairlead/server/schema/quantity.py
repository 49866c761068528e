"""Quantities such as 500m, 1Gi and 1e3. Parsing is exact. A server returns every quantity in its canonical form."""

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_UP, Context, Decimal
from functools import lru_cache
from typing import Final

_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX: Final = {power: suffix for suffix, power in _BINARY.items()}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_NANO: Final = Decimal(1).scaleb(-9)
_MILLI: Final = Decimal(1).scaleb(-3)
_LARGEST: Final = Decimal(2**63 - 1)  # The largest value with a binary suffix.

WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """Raised for a text that is not a quantity. The message is the real server's."""


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[Decimal, str]:
    """Return the exact value (rounded up to a billionth) and its format: binary, decimal or exponent."""
    number, suffix = _split_suffix(text)
    if suffix in _BINARY:
        value, notation = _EXACT.multiply(number, Decimal(1024 ** _BINARY[suffix])), "binary"
        value = max(-_LARGEST, min(value, _LARGEST))
    elif suffix in _DECIMAL:
        value, notation = number.scaleb(_DECIMAL[suffix], _EXACT), "decimal"
    else:
        value, notation = number.scaleb(_parse_exponent(suffix), _EXACT), "exponent"
    return (value.quantize(_NANO, ROUND_UP, _EXACT) if _count_decimals(value) > 9 else value), notation


@lru_cache(maxsize=4096)
def canonicalize(text: str, *, is_milli: bool = False) -> str:
    """Return a quantity in canonical form. `is_milli` rounds it up to thousandths. Raises QuantityError."""
    value, notation = parse(text)
    if is_milli and _count_decimals(value) > 3 and _EXACT.remainder(value, _MILLI):
        return format_quantity(value.quantize(_MILLI, ROUND_UP, _EXACT), notation)
    return text if _is_canonical(text) else format_quantity(value, notation)


def _is_canonical(text: str) -> bool:
    """Return whether a real server keeps the text as it is, which includes 1.500, +1 and 1E3."""
    _, suffix = _split_suffix(text)
    integer_digits, _, fraction = text[: len(text) - len(suffix)].lstrip("+-").partition(".")
    digits = integer_digits.lstrip("0") + fraction
    if suffix in _BINARY:
        exponent = 10 * _BINARY[suffix]
        is_short = 15 - len(digits) - int(exponent * 3 / 10) - 1 >= 0
        return not fraction and "." not in text and is_short and bool(int(digits or 0) & 7)
    scale = (_DECIMAL[suffix] if suffix in _DECIMAL else _parse_exponent(suffix)) - len(fraction)
    is_in_range = len(digits) <= 18 and scale >= -9 and scale % 3 == 0
    return is_in_range and digits[:1] not in ("", "0") and not digits.endswith("000")


def _count_decimals(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent


def format_quantity(value: Decimal, notation: str) -> str:
    """Return the canonical text of a value in the format binary, decimal or exponent."""
    if not value:
        return "0"
    if notation == "binary" and abs(value) >= 1024 and value == value.to_integral_value():
        integer, power = int(value), 0
        while power < 6 and integer % 1024 == 0:
            integer, power = integer // 1024, power + 1
        return f"{integer}{_BINARY_SUFFIX.get(power, '')}"
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    all_digits = "".join(map(str, digits))
    mantissa = all_digits.rstrip("0")
    exponent += len(all_digits) - len(mantissa)
    mantissa, exponent = mantissa + "0" * (exponent % 3), exponent - exponent % 3
    # There is no suffix beyond E: a real server returns 1 for 1000E.
    suffix = _DECIMAL_SUFFIX.get(exponent, "") if notation != "exponent" else f"e{exponent}" if exponent else ""
    return f"{'-' if sign else ''}{mantissa}{suffix}"


def _split_suffix(text: str) -> tuple[Decimal, str]:
    end = 1 if text[:1] in ("+", "-") else 0
    start, dots = end, 0
    while end < len(text) and ((text[end].isdecimal() and text[end].isascii()) or text[end] == "."):
        dots += text[end] == "."
        end += 1
    if not text or not set(text[end:]) <= set("eEinumkKMGTP+-0123456789"):
        raise QuantityError(WRONG_FORMAT)
    if dots > 1 or end == start:
        raise QuantityError(WRONG_FORMAT)
    number = "0" if text[start:end] == "." else text[:end]
    return _EXACT.create_decimal(number), text[end:]


def _parse_exponent(suffix: str) -> int:
    if suffix[0] not in "eE":
        raise QuantityError(WRONG_SUFFIX)
    try:
        return max(-100_000, min(100_000, int(suffix[1:])))
    except ValueError:
        raise QuantityError(WRONG_SUFFIX) from None
