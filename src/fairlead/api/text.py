"""Text that others wrote: made safe to show, and not taken for a list of texts."""

from collections.abc import Iterable


def printable(text: str) -> str:
    """`text` on one line, without what could move a terminal's cursor or forge a log line."""
    return "".join(c if c.isprintable() else " " for c in text)


def reject_single_string(option: str, names: Iterable[str]) -> None:
    """Raise where one text stands for a list of them: it would be taken for its letters, or for each part of it."""
    if isinstance(names, str):
        raise ValueError(f"{option}={names!r} is one text where a list is wanted: write {option}=[{names!r}]")
