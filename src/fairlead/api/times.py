"""Times as the API writes them: RFC 3339 in UTC, to the second or (MicroTime) to the microsecond."""

import functools
from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """Seconds since the epoch as a metav1.Time, whole seconds."""
    return _second(int(seconds))


@functools.lru_cache(64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """Seconds since the epoch as a metav1.MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> float:
    """A metav1.Time or MicroTime as seconds since the epoch. Raises ValueError on anything else."""
    return datetime.fromisoformat(text).timestamp()
