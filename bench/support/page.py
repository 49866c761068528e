"""Format the parts of the page: tables, plots, numbers, and the description of a run."""

from support import svg_bars

plots = {}  # plots of the current section by name


def table(column_names, rows):
    lines = [column_names, ["---", *["---:"] * (len(column_names) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plot(name, title, bars):
    plots[name] = svg_bars.chart(title, bars)
    return f"![{title}](benchmarks/{name}.svg)"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def with_ratio(value, ours, *, is_more_better=False):
    """Format a value and its ratio to fairlead's value."""
    ratio = ours / value if is_more_better else value / ours
    return f"{number(value)} ({ratio:.1f}×)"


def describe_run(result):
    """Describe the date and the machine of a measurement."""
    run = result["run"]
    description = f"Measured {run['date']} on {run['machine']}, Python {run['python']}, {_load(run)}."
    if part := run.get("part"):
        description += f" Part of it was measured separately on {part['date']}, {_load(part)}."
    return " ".join([description, *([run["note"]] if "note" in run else [])])


def _load(run):
    before = f"load {run['load before']} in the minute before and " if "load before" in run else "load "
    return f"{before}{run['load']} at the end"


def head(names):
    return ["", *names, *(["embedded is better by"] if len(names) == 2 else [])]


def compare(row_name, values, goal_ratio=None):
    """Format the values of both servers, and the ratio. A ratio below 1 is marked."""
    cells = [number(value) for value in values]
    if len(values) == 2 and not all(values):
        cells.append("")  # Too small to compare.
    elif len(values) == 2:
        ratio = values[0] / values[1] if row_name.endswith("a second") else values[1] / values[0]
        verdict = f" (goal {goal_ratio}×: {'met' if ratio >= goal_ratio else '**missed**'})" if goal_ratio else ""
        cells.append(f"{ratio:.1f}×" + (", **behind**" if ratio < 1 else "") + verdict)
    return cells
