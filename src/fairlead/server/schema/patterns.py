"""Regular expressions by RE2, which takes time linear in the text for every pattern."""

from functools import lru_cache
from typing import Any

import re2


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern with RE2. Raise re2.error if it is invalid."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
