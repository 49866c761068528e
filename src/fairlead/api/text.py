"""Checks of text from outside."""

from collections.abc import Iterable


def printable(text: str) -> str:
    """Return `text` on one line, without characters that move a terminal's cursor or forge a log line."""
    return "".join(c if c.isprintable() else " " for c in text)


def reject_single_string(option: str, names: Iterable[str]) -> None:
    """Raise ValueError if `names` is one string: iterating it would yield its characters."""
    if isinstance(names, str):
        raise ValueError(f"{option}={names!r} is a string, not a list: write {option}=[{names!r}]")
