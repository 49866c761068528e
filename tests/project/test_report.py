"""Tests that tables print cells as plain text, even if they contain escape codes or markup."""

import io

from rich.console import Console

from fairlead.report import tables


def print_row(*cells):
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="truecolor")
    tables.print_table("title", ["name", "value"], [cells], console=console)
    return out.getvalue()


def test_cells_cannot_use_escape_codes_markup_or_line_breaks():
    text = print_row("\x1b[2J[red]x[/red]", "a\r\nfaked row\u2028b")
    assert "\x1b[2J" not in text
    assert "[red]x[/red]" in text
    assert "\n faked" not in text
    assert "faked row" in text


def test_output_to_a_file_has_no_trailing_spaces():
    out = io.StringIO()
    tables.print_table("title", ["name", "value"], [("a", 1), ("longer", 20)], console=Console(file=out, width=80))
    assert all(line == line.rstrip() for line in out.getvalue().splitlines())
    assert "longer" in out.getvalue()


def test_long_cells_wrap_completely():
    assert print_row("a", "y" * 200).count("y") == 200
