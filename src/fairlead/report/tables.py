"""Print tables to a terminal. Control characters and markup in cells have no effect, because anyone may write them."""

from collections.abc import Collection, Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairlead.api.text import printable


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left_aligned: Collection[str] = (),
    console: Console | None = None,
) -> None:
    """Print a table. The first column and the columns in `left_aligned` are left-aligned, all others right-aligned.

    Guarantees: a cell cannot move the cursor, change colours or fake a row. Long cells wrap to the console's width.
    """
    console = console or Console()
    table = Table(
        title=_format_cell(title) if title else None, title_justify="left", box=SIMPLE_HEAD, collapse_padding=True
    )
    for index, column in enumerate(columns):
        is_right_aligned = index and column not in left_aligned
        table.add_column(_format_cell(column), justify="right" if is_right_aligned else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_format_cell(cell) for cell in row))
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as output:  # In a file or a pipe the padding is only trailing space.
        console.print(table)
    console.file.writelines(line.rstrip() + "\n" for line in output.get().splitlines())


def print_notes(*lines: str, console: Console | None = None) -> None:
    """Print lines in a dim style, for example below a table."""
    console = console or Console()
    for line in lines:
        console.print(_format_cell(line), style="dim")


def _format_cell(cell: object) -> Text:
    """Return a table cell as unstyled text on one line."""
    return Text(printable(str(cell)))
