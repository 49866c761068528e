"""Functions for text that comes from users or from a network."""

from collections.abc import Iterable


def printable(text: str) -> str:
    """Return `text` with a space for each non-printable character, so that it cannot forge a log line."""
    return "".join(c if c.isprintable() else " " for c in text)


def reject_single_string(option: str, names: Iterable[str]) -> None:
    """Raise ValueError if the value of an option is one string instead of a list of strings.

    Python would otherwise iterate over the characters of the string.
    """
    if isinstance(names, str):
        raise ValueError(f"{option}={names!r} is a string, not a list: write {option}=[{names!r}]")
