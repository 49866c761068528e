"""Text that others wrote, made safe to show."""


def printable(text: str) -> str:
    """`text` on one line, without what could move a terminal's cursor or forge a log line."""
    return "".join(c if c.isprintable() else " " for c in text)
