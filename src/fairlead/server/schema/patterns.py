"""Regular expressions by RE2, whose running time is linear in the text for every pattern."""

from functools import lru_cache
from typing import Any

import re2


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compile a regular expression with RE2. Raises re2.error if it is invalid."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
