"""Durations such as 90s, 5m and 1h30m."""

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_FORM = re.compile(r"(?:[0-9]{1,9}[hms])+")


def parse_duration(text: str) -> float:
    """Parse a duration such as `5m` or `1h30m` to seconds. Raises ValueError."""
    if not _FORM.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration: write for example 30s, 5m or 1h30m")
    return sum(int(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"[0-9]+[hms]", text))


def format_duration(span: float) -> str:
    """Format seconds as a duration, such as `4m10s`."""
    total_seconds = max(0, round(span))
    hours, minutes, seconds_left = total_seconds // 3600, total_seconds // 60 % 60, total_seconds % 60
    text = "".join(f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (seconds_left, "s")) if n)
    return text or "0s"
