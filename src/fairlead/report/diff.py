"""The diff of a dry run: what would change in each object, with colours on a terminal."""

from collections.abc import Iterable
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text

from fairlead.api.history import WRITTEN, FieldChange, History, ObjectRef, Record
from fairlead.api.text import printable

_PLANNED = {"created": "would be created", "changed": "would change", "deleted": "would be deleted"}
_STYLES = {"+": "green", "-": "red", "@": "bold"}


class DryRunDiff:
    """Prints what each write of a dry run would change.

    Guarantees: an equal diff of the same object is printed once, also if more passes find it. The values of Secrets are
    not printed. Colours are used only on a terminal, and not if NO_COLOR is set. Text of objects cannot move the cursor
    or change colours.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._printed: dict[tuple[ObjectRef, str], list[str]] = {}

    def subscribe(self, history: History) -> None:
        """Print the writes of a run from now on."""
        history.subscribe(self._on_write, [WRITTEN])

    @property
    def changed(self) -> set[ObjectRef]:
        """The objects that would change."""
        return {ref for ref, _ in self._printed}

    def print_summary(self) -> None:
        """Print how many objects would change."""
        count = len(self.changed)
        objects = "1 object" if count == 1 else f"{count or 'no'} objects"
        self._console.print(Text(f"{objects} would change"))

    def _on_write(self, record: Record) -> None:
        outcome = "deleted" if record.outcome == "deleting" else record.outcome
        if record.object is None or outcome not in _PLANNED:
            return
        subresource = f" ({record.subresource})" if record.subresource else ""
        lines = [f"@ {record.object}{subresource} {_PLANNED[outcome]}", *diff_lines(record.fields)]
        key = record.object, record.subresource
        if self._printed.get(key) == lines:
            return
        self._printed[key] = lines
        for line in lines:
            self._console.print(Text(printable(line), style=_STYLES[line[0]]), soft_wrap=True)


def diff_lines(fields: Iterable[FieldChange]) -> list[str]:
    """Return the changed fields as lines that start with `-` (old value) or `+` (new value)."""
    return [
        f"{sign} {line}"
        for path, old, new in fields
        for sign, value in (("-", old), ("+", new))
        if value is not None
        for line in _format_field_lines(path, value)
    ]


def _format_field_lines(path: str, value: Any) -> list[str]:
    value_yaml = (
        yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=10_000).removesuffix("\n...\n").rstrip("\n")
    )
    if isinstance(value, dict | list) and value:
        return [f"{path}:", *(f"  {line}" for line in value_yaml.split("\n"))]
    return [f"{path}: {value_yaml}"]
