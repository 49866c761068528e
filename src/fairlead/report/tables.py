"""Tables in a terminal. What stands in a cell may come from anyone, so it is shown as text and nothing else."""

from collections.abc import Collection, Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairlead.api.text import printable


def show(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left: Collection[str] = (),
    console: Console | None = None,
) -> None:
    """Print a table: the first column and those in `left` to the left, the others, numbers, to the right.

    Guarantees: no cell can move the cursor, colour the terminal or forge a row. Wraps to the console's width.
    """
    console = console or Console()
    table = Table(title=text(title) if title else None, title_justify="left", box=SIMPLE_HEAD, collapse_padding=True)
    for index, column in enumerate(columns):
        table.add_column(text(column), justify="right" if index and column not in left else "left", overflow="fold")
    for row in rows:
        table.add_row(*(text(cell) for cell in row))
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as drawn:  # in a file or a pipe, padding is but trailing space
        console.print(table)
    console.file.writelines(line.rstrip() + "\n" for line in drawn.get().splitlines())


def notes(*lines: str, console: Console | None = None) -> None:
    """Print what is to be said about a table, dimmed."""
    console = console or Console()
    for line in lines:
        console.print(text(line), style="dim")


def text(cell: object) -> Text:
    """The cell as inert text on one line."""
    return Text(printable(str(cell)))
