"""What is known of one object, as text for a terminal."""

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from fairlead.api.history import FieldChange
from fairlead.api.history_text import format_seconds
from fairlead.api.text import printable
from fairlead.report.diff import diff_lines
from fairlead.report.live import shapes

_STYLES = {"+": "green", "-": "red", "!": "bold red", "#": "bold"}


def print_object(details: shapes.ObjectDetails, *, max_passes: int, console: Console | None = None) -> None:
    """Print the state of an object and its last passes, newest first.

    Guarantees: text of objects cannot move the cursor or change colours.
    """
    console = console or Console(highlight=False)
    for style, line in _lines(details, max_passes):
        console.print(Text(printable(line), style=_STYLES.get(style, "")), soft_wrap=True)


def _lines(details: shapes.ObjectDetails, max_passes: int) -> Iterator[tuple[str, str]]:
    summary = details.summary
    ref = summary.object
    where = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
    yield "#", f"{ref.kind} {where}, controller {summary.controller} of {details.operator}"
    later = f", next pass in {format_seconds(summary.next_look)}" if summary.next_look is not None else ""
    state = {"backoff": "back-off", "held": "held back"}.get(summary.state, summary.state)
    failures = f", {summary.failures} failed in a row" if summary.failures else ""
    yield "!" if summary.failures else "", f"{state}{later}; {_count(summary.passes, 'pass')}{failures}"
    if not details.is_cached:
        yield "!", "The object does not exist, or is not watched"
    for note in details.notes:
        yield "!", note
    for each in details.history[:max_passes]:
        yield "", ""
        yield from _pass_lines(each, details.time)
    if (more := len(details.history) - max_passes) > 0:
        yield "", ""
        yield "", f"{_count(more, 'earlier pass')}: add --passes {len(details.history)}"


def _pass_lines(each: shapes.Pass, now: float) -> Iterator[tuple[str, str]]:
    started = datetime.fromtimestamp(each.started, UTC).strftime("%H:%M:%S.%f")[:-3]
    ago = format_seconds(max(0.0, now - each.started))
    result = f"running for {format_seconds(each.seconds)}"
    if not each.is_running:
        reason = f" ({each.reason})" if each.reason else ""
        later = f", next pass after {format_seconds(each.next_look)}" if each.next_look is not None else ""
        result = f"{each.outcome}{reason} after {format_seconds(each.seconds)}{later}"
    yield "!" if each.outcome == "error" else "#", f"{started}Z, {ago} ago, pass {each.id}: {result}"
    for cause in each.causes or ["unknown"]:
        yield "", f"  woken by {cause}"
    if each.message:
        yield "!" if each.outcome == "error" else "", f"  {each.message}"
    for step in each.steps:
        yield "", f"  {step.text}"
        for line in diff_lines(FieldChange(change.path, change.old, change.new) for change in step.changes):
            yield line[0], f"      {line}"
    if each.more_steps:
        yield "", f"  {_count(each.more_steps, 'more step')}"


def _count(count: int, noun: str) -> str:
    plural = noun if count == 1 else f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count} {plural}"
