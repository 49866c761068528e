"""The HTML page of `fairlead demo --report`: figures, and a timeline of reconciles and writes for each variant.

The page is one file without scripts and loads no other file. All text that comes from objects is escaped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import log1p
from typing import Any

from fairlead.api.history import REQUEST, Record

WIDTH, LANE_HEIGHT, LANE_START = 900, 22, 130
TICK_LABEL_WIDTH = 60
COLUMN = 1.5
"""Marks that are closer than this are drawn as one. Nobody could distinguish them, and the page would be large."""
LINEAR_SECONDS = 0.05
"""Time is drawn linearly up to this second, and logarithmically after it: each doubling has the same width. So both the
first second and the minutes of backoff after it are visible."""
TICKS = (0.1, 1.0, 10.0, 60.0, 600.0, 3600.0)

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #ccc; --pass: #5d6f88; --write: #2b6cb0;
  --bad: #c53030; --done: #2f855a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181c; --line: #444; --pass: #8797ad;
  --write: #63b3ed; --bad: #fc8181; --done: #68d391; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; background: linear-gradient(to left, var(--paper) 1rem, transparent 2rem) right local,
  linear-gradient(to left, var(--line), transparent .7rem) right scroll; background-repeat: no-repeat; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
svg { width: 100%; min-width: 50rem; height: auto; } svg text { fill: var(--ink); font-size: 12px; }
.axis { stroke: var(--line); } path { stroke-width: 1; } .reconcile { stroke: var(--pass); }
.write { stroke: var(--write); } .bad { stroke: var(--bad); } .bad path { stroke-width: 2; }
.done { stroke: var(--done); stroke-width: 3; }
@media (max-width: 60rem) { table { display: block; } tbody { display: flex; } th, td { display: block; }
  tr { flex: 1; } tr:first-child { flex: 2; } tr:first-child th { text-align: left; }
  td:first-child { text-align: right; } th:first-child::after { content: "\\200b"; } }
.key span { margin-right: 1.5rem; white-space: nowrap; } .key .write { color: var(--write); }
.key .bad { color: var(--bad); } .key .reconcile { color: var(--pass); } .key .done { color: var(--done); }
"""


def render(results: Mapping[str, tuple[int, Mapping[Any, Any]]]) -> str:
    """Return the HTML page. `results` maps a system to (number of objects, Outcome of each variant)."""
    html_parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>fairlead demo</title><style>{STYLE}</style><h1>Old operators and fairlead</h1>",
        "<p>old: the original's write path. new: the same operator with fairlead.</p>",
        "<p class=key><span class=done>| object done</span><span class=reconcile>| reconcile</span>",
        "<span class=write>| write</span><span class=bad>| conflict or failed reconcile</span></p>",
        "<p>The time axis is logarithmic.</p>",
    ]
    for system, (scale, outcomes) in results.items():
        html_parts.append(f"<h2>{escape(system)}, {scale} object{'s' if scale > 1 else ''}</h2>")
        html_parts.append(_render_table({str(variant): outcome.to_json() for variant, outcome in outcomes.items()}))
        end = max(
            (record.time for outcome in outcomes.values() for record in outcome.records if _is_drawn(record)),
            default=1.0,
        )
        for variant, outcome in outcomes.items():
            svg = timeline(outcome.records, outcome.seconds, end)
            html_parts.append(f"<h3>{escape(str(variant))}</h3><div class=wide>{svg}</div>")
            for title, items in (("Lost", outcome.losses), ("Stuck", outcome.stuck)):
                if items:
                    first = "".join(f"<li>{escape(item)}" for item in items[:20])
                    omitted_line = f"<p>and {len(items) - 20} more</p>" if len(items) > 20 else ""
                    html_parts.append(
                        f"<details><summary>{title}: {len(items)}</summary><ul>{first}</ul>{omitted_line}</details>"
                    )
    return "".join(html_parts)


def timeline(records: Sequence[Record], finish_times: Sequence[float], end: float) -> str:
    """Return an SVG timeline with a row for finished objects, and rows for the reconciles and writes of each actor."""
    drawn_records = [record for record in records if _is_drawn(record)]
    lanes = sorted({_get_lane(record) for record in drawn_records}, key=lambda lane: (lane[0], not lane[1]))
    width, longest = WIDTH - LANE_START - 10, log1p(max(end, LINEAR_SECONDS) / LINEAR_SECONDS)

    def x(at: float) -> float:
        return LANE_START + round(width * log1p(max(0.0, at) / LINEAR_SECONDS) / longest / COLUMN) * COLUMN

    svg_parts = [_draw_lane_label(0, "done"), _draw_marks("done", 0, {x(at) for at in finish_times})]
    for row, (actor, is_reconcile) in enumerate(lanes, start=1):
        in_lane = [record for record in drawn_records if _get_lane(record) == (actor, is_reconcile)]
        css_class = "reconcile" if is_reconcile else "write"
        svg_parts.append(_draw_lane_label(row, f"{actor} {'reconciles' if is_reconcile else 'writes'}"))
        svg_parts.append(_draw_marks(css_class, row, {x(record.time) for record in in_lane if not _has_failed(record)}))
        svg_parts.append(_draw_failures(row, in_lane, x))
    base = LANE_HEIGHT * (len(lanes) + 1) + 8
    svg_parts.append(f'<path class="axis" d="M{LANE_START} {base}H{WIDTH}"/>')
    ticks = [0.0, *(tick for tick in TICKS if x(end) - x(tick) > TICK_LABEL_WIDTH), end]
    svg_parts.extend(
        f'<text x="{x(at):g}" y="{base + 15}" text-anchor="middle">{_draw_tick_label(at)}</text>' for at in ticks
    )
    size = f"0 0 {WIDTH + 30} {base + 22}"
    return f'<svg viewBox="{size}" role="img" aria-label="timeline">{"".join(svg_parts)}</svg>'


def format_duration(seconds: float | None) -> str:
    """Return a duration as text, such as 0.64s or 16m41s, and "never" for None."""
    if seconds is None:
        return "never"
    if seconds < 59.995:
        return f"{seconds:.2f}s"
    minutes, seconds_left = divmod(round(seconds), 60)
    return f"{minutes}m{seconds_left:02}s"


def _draw_tick_label(at: float) -> str:
    return format_duration(at).removesuffix("00s") if at >= 60 else f"{at:.3g}s"


def _draw_lane_label(row: int, name: str) -> str:
    return f'<text x="0" y="{LANE_HEIGHT * row + 17}">{escape(name)}</text>'


def _draw_marks(css_class: str, row: int, columns: Iterable[float]) -> str:
    lines = "".join(f"M{column:g} {LANE_HEIGHT * row + 4}v{LANE_HEIGHT - 6}" for column in sorted(columns))
    return f'<path class="{css_class}" d="{lines}"/>' if lines else ""


def _draw_failures(row: int, records: Iterable[Record], x: Callable[[float], float]) -> str:
    """Return the SVG of failed marks with tooltips. Marks in the same column share a tooltip, which counts them."""
    columns: dict[float, list[Record]] = {}
    for record in records:
        if _has_failed(record):
            columns.setdefault(x(record.time), []).append(record)
    paths = []
    for column, in_column in columns.items():
        first, hidden_count = in_column[0], len(in_column) - 1
        tooltip = f"{first.time:.3f} s {first.verb} {_format_target(first)}" + (
            f", and {hidden_count} more" if hidden_count else ""
        )
        line = f"M{column:g} {LANE_HEIGHT * row + 4}v{LANE_HEIGHT - 6}"
        paths.append(f'<path d="{line}"><title>{escape(tooltip)}</title></path>')
    return f'<g class="bad">{"".join(paths)}</g>' if paths else ""


def _is_drawn(record: Record) -> bool:
    return record.verb != "GET"


def _get_lane(record: Record) -> tuple[str, bool]:
    return record.actor, record.point != REQUEST


def _has_failed(record: Record) -> bool:
    return record.outcome == ("409" if record.point == REQUEST else "error")


def _format_target(record: Record) -> str:
    return record.path if record.point == REQUEST or record.object is None else record.object.name


def _render_table(rows: Mapping[str, dict[str, Any]]) -> str:
    column_names = ("", "409 conflict", "409 exists", "requests", "watch events", "p50", "p99", "last", "lost", "stuck")
    lines = []
    for variant, row in rows.items():
        times = [format_duration(seconds) for seconds in row["seconds_to_done"].values()]
        counts = [row[key] for key in ("conflicts", "already_exists", "requests", "watch_events")]
        cells = "".join(f"<td>{escape(str(cell))}" for cell in (variant, *counts, *times, row["lost"], row["stuck"]))
        lines.append(f"<tr>{cells}")
    return f"<div class=wide><table><tr>{''.join(f'<th>{name}' for name in column_names)}{''.join(lines)}</table></div>"
