"""Spans of time as people and Kubernetes write them: 90s, 5m, 1h30m."""

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_FORM = re.compile(r"(?:[0-9]{1,9}[hms])+")


def seconds(text: str) -> float:
    """`5m` in seconds. Raises ValueError, which names the form."""
    if not _FORM.fullmatch(text):
        raise ValueError(f"{text!r} is no span of time: say it as 30s, 5m or 1h30m")
    return sum(int(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"[0-9]+[hms]", text))


def words(span: float) -> str:
    """Seconds as `4m10s`."""
    whole = max(0, round(span))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    said = "".join(f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if n)
    return said or "0s"
