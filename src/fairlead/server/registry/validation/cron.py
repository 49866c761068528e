"""Cron schedules and time zones, with the error messages of a real server's parser."""

import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MONTHS: Final = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_DAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS: Final = frozenset(["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"])
_DURATION: Final = re.compile(r"[-+]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+")
_PART: Final = re.compile(r"[A-Za-z0-9._+-]*")


def find_schedule_problem(schedule: str) -> str:
    """Return why a cron schedule cannot be parsed, or "" if it can."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, _, schedule = schedule.partition(" ")
        name = zone.partition("=")[2]
        if not _is_known_zone(name):
            return f"provided bad location {name}: unknown time zone {name}"
        schedule = schedule.strip()
    if schedule.startswith("@"):
        return _find_descriptor_problem(schedule)
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field_text, (minimum, maximum, names) in zip(fields, _FIELDS, strict=True):
        for range_text in filter(None, field_text.split(",")):
            if problem := _find_range_problem(range_text, minimum, maximum, names):
                return problem
    return ""


def _find_descriptor_problem(descriptor: str) -> str:
    if descriptor in _DESCRIPTORS:
        return ""
    if not descriptor.startswith("@every "):
        return f"unrecognized descriptor: {descriptor}"
    duration = descriptor.removeprefix("@every ")
    if _DURATION.fullmatch(duration):
        return ""
    return f'failed to parse duration {descriptor}: time: invalid duration "{duration}"'


def _find_range_problem(text: str, minimum: int, maximum: int, names: dict[str, int]) -> str:
    span, *steps = text.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        start, end = minimum, maximum
    else:
        numbers: list[int] = []
        for end_text in ends[:2]:
            number = names.get(end_text.lower(), _parse_number(end_text))
            if isinstance(number, str):
                return number
            numbers.append(number)
        if len(ends) > 2:
            return f"too many hyphens: {text}"
        start, end = numbers[0], numbers[-1]
    if len(steps) > 1:
        return f"too many slashes: {text}"
    step: int | str = 1
    if steps:
        step = _parse_number(steps[0])
        if isinstance(step, str):
            return step
        if len(ends) == 1 and ends[0] not in ("*", "?"):
            end = maximum
    if start < minimum:
        return f"beginning of range ({start}) below minimum ({minimum}): {text}"
    if end > maximum:
        return f"end of range ({end}) above maximum ({maximum}): {text}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {text}"
    return f"step of range should be a positive number: {text}" if step == 0 else ""


def _parse_number(text: str) -> int | str:
    """Return the number that `text` stands for, or an error message."""
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text) if int(text) >= 0 else f"negative number ({int(text)}) not allowed: {text}"
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'


def find_time_zone_problem(zone: str) -> str:
    """Return why a name is not a time zone, or "" if it is one."""
    if not zone:
        return "timeZone must be nil or non-empty string"
    zone_parts = zone.split("/")
    if any(part in (".", "..") or part.startswith("-") or not _PART.fullmatch(part) for part in zone_parts):
        return f"unknown time zone {zone}"
    if zone.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return "" if _is_known_zone(zone) else f"unknown time zone {zone}"


def _is_known_zone(zone: str) -> bool:
    try:
        return zone in ("", "UTC") or ZoneInfo(zone) is not None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
