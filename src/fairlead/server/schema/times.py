"""Times and durations in JSON, as Go reads and writes them."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

_TIME: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS: Final = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip


@lru_cache(maxsize=4096)
def normalize_time(text: str, *, is_micro: bool = False) -> str:
    """Return an RFC 3339 time in UTC with whole seconds (or microseconds). Raises ValueError with Go's message."""
    match = _TIME.fullmatch(text)
    layout = _MICRO_LAYOUT if is_micro else _LAYOUT
    if match is None or (is_micro and len(match[7] or "") != 7):
        raise ValueError(_find_parse_error(text, layout, is_micro))
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    zone = match[8]
    offset = UTC if zone == "Z" else timezone((1 if zone[0] == "+" else -1) * _parse_zone_offset(zone))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=offset).astimezone(UTC)
    except (ValueError, OverflowError):
        part = "month" if not 1 <= month <= 12 else "hour" if hour > 23 else "minute" if minute > 59 else "day"
        part = "second" if part == "day" and second > 59 else part
        raise ValueError(f'parsing time "{text}": {part} out of range') from None
    seconds = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{seconds}.{match[7][1:7].ljust(6, '0')}Z" if is_micro else seconds + "Z"


def normalize_duration(text: str) -> str:
    """Return a Go duration as Go writes it: 90m becomes 1h30m0s. Raises ValueError with Go's message."""
    return format_duration(parse_duration(text))


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a Go duration. Raises ValueError with Go's message."""
    remaining_text = text[1:] if text[:1] in ("+", "-") else text
    if remaining_text == "0":
        return 0
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if not remaining_text:
        raise ValueError(f"time: invalid duration {quoted}")
    total, at = 0, 0
    while at < len(remaining_text):
        match = _DURATION.match(remaining_text, at)
        if match is None:
            number = re.match(r"[\d.]*", remaining_text[at:])
            unit = re.match(r"[^\d.]*", remaining_text[at + (number.end() if number else 0) :])
            if not number or not number[0].strip("."):
                raise ValueError(f"time: invalid duration {quoted}")
            if not unit or not unit[0]:
                raise ValueError(f"time: missing unit in duration {quoted}")
            raise ValueError(f'time: unknown unit "{unit[0]}" in duration {quoted}')
        integer_digits, _, fraction = match[1].partition(".")
        unit_size = _UNITS[match[2]]
        total += int(integer_digits or 0) * unit_size
        if fraction:
            total += int(fraction) * unit_size // 10 ** len(fraction)
        at = match.end()
    if total > 2**63 - 1:
        raise ValueError(f"time: invalid duration {quoted}")
    return -total if text[0] == "-" else total


def format_duration(nanoseconds: int) -> str:
    """Return nanoseconds as Go writes a duration: 1h30m0s."""
    sign, remaining = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if remaining < 10**9:
        for unit, size in (("ms", 10**6), ("µs", 1000), ("ns", 1)):
            if remaining >= size:
                return f"{sign}{_format_decimal(remaining, size)}{unit}"
        return "0s"
    hours, remaining = divmod(remaining, _UNITS["h"])
    minutes, remaining = divmod(remaining, _UNITS["m"])
    text = f"{_format_decimal(remaining, 10**9)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _format_decimal(value: int, size: int) -> str:
    integer, fraction = divmod(value, size)
    digits = str(fraction).rjust(len(str(size)) - 1, "0").rstrip("0") if size > 1 else ""
    return f"{integer}.{digits}" if digits else str(integer)


def _parse_zone_offset(zone: str) -> timedelta:
    return timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))


def _find_parse_error(text: str, layout: str, is_micro: bool) -> str:
    """Return Go's error message: a part is out of range, or the rest of the text does not match the layout."""
    pieces = [(r"\d{4}", "2006", "", 0), ("-", "-", "", 0), (r"\d\d", "01", "month", 12), ("-", "-", "", 0),
              (r"\d\d", "02", "", 0), ("T", "T", "", 0), (r"\d\d", "15", "hour", 23), (":", ":", "", 0),
              (r"\d\d", "04", "minute", 59), (":", ":", "", 0), (r"\d\d", "05", "second", 59)]  # fmt: skip
    prefix, at = f'parsing time "{text}"', 0
    for pattern, expected, unit, maximum in pieces:
        match = re.compile(pattern, re.ASCII).match(text, at)
        if match is None:
            return f'{prefix} as "{layout}": cannot parse "{text[at:]}" as "{expected}"'
        if unit and (int(match[0]) > maximum or (unit == "month" and match[0] == "00")):
            return f"{prefix}: {unit} out of range"
        at = match.end()
    fraction = re.compile(r"[.,]\d{6}" if is_micro else r"[.,]\d+", re.ASCII).match(text, at)
    if is_micro and fraction is None:
        return f'{prefix} as "{layout}": cannot parse "{text[at:]}" as ".000000"'
    at = fraction.end() if fraction else at
    zone = re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII).match(text, at)
    if zone is None:
        return f'{prefix} as "{layout}": cannot parse "{text[at:]}" as "Z07:00"'
    return f'{prefix}: extra text: "{text[zone.end() :]}"'
