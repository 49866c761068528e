"""The rules: one module per family, each a function from a trace to findings."""

from collections.abc import Callable, Iterator

from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import Trace
from fairlead.tools.lint.findings import Finding
from fairlead.tools.lint.rules import applies, caches, creates, patches, reads, retries, status, updates

Check = Callable[[Program, Trace], Iterator[Finding]]

GO_RULES: tuple[tuple[tuple[str, ...], Check], ...] = (
    (("W101", "W102", "W103", "W105", "W106"), creates.check),
    (("W201", "W202", "W203"), patches.check),
    (("W204",), status.check_deciding),
    (("W205",), status.check_cached),
    (("W104", "W206", "W207", "W208", "W802"), updates.check),
    (("W301", "W302", "W303", "W304"), retries.check),
    (("W401",), caches.check),
    (("W501",), reads.check_absence),
    (("W502",), status.check_dropped),
    (("W503",), reads.check_requeue),
    (("W602", "W603"), applies.check_apply),
    (("W701",), applies.check_delete),
)
"""The codes that a function reports, and the function."""
