"""Patterns by RE2: linear in the text, whatever the pattern."""

from functools import lru_cache
from typing import Any

import re2


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """A pattern as RE2 reads it. Raises re2.error."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
