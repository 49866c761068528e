"""Times as the API writes them: RFC 3339 in UTC, in seconds or (MicroTime) in microseconds."""

import functools
from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """Format seconds since the epoch as a metav1.Time, in whole seconds."""
    return _format_second(int(seconds))


@functools.lru_cache(64)
def _format_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """Format seconds since the epoch as a metav1.MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> float:
    """Parse a metav1.Time or MicroTime to seconds since the epoch. Raises ValueError for any other text."""
    return datetime.fromisoformat(text).timestamp()
