"""A page that opens offline: for each system and way a timeline of reconciles, writes and conflicts, and the figures.

One file, no script, nothing loaded. All text that comes from objects is escaped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import log1p
from typing import Any, Protocol

WIDTH, LANE, LEFT = 900, 22, 130
ROOM = 60
"""What the label of a tick takes."""
COLUMN = 1.5
"""Marks closer than this are drawn as one: nobody could tell them apart, and they would make the page heavy."""
EARLY = 0.05
"""Seconds up to which time is drawn evenly; from there on each doubling takes the same room, so that both the first
second and the silence of minutes after it can be seen."""
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


class Mark(Protocol):
    """Something that happened: see the stage of the reference systems."""

    @property
    def at(self) -> float: ...
    @property
    def who(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def code(self) -> int: ...


def render(told: Mapping[str, tuple[int, Mapping[Any, Any]]]) -> str:
    """The page: of each system its scale and, by way, its outcome (see the outcomes of the reference systems)."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>fairlead demo</title><style>{STYLE}</style><h1>Old way against new</h1>",
        "<p class=key><span class=done>| an object is done</span><span class=reconcile>| a pass</span>",
        "<span class=write>| a write</span><span class=bad>| a conflict, or a pass that failed</span></p>",
        "<p>The first moments have the most room: each doubling of time takes as much of it as the one before.</p>",
    ]
    for system, (scale, outcomes) in told.items():
        parts.append(f"<h2>{escape(system)}, {scale} object{'s' if scale > 1 else ''}</h2>")
        parts.append(_table({str(way): outcome.json() for way, outcome in outcomes.items()}))
        end = max((mark.at for outcome in outcomes.values() for mark in outcome.marks if _drawn(mark)), default=1.0)
        for way, outcome in outcomes.items():
            drawn = timeline(outcome.marks, outcome.seconds, end)
            parts.append(f"<h3>{escape(str(way))} way</h3><div class=wide>{drawn}</div>")
            for title, items in (("Lost", outcome.losses), ("Stuck", outcome.stuck)):
                if items:
                    shown = "".join(f"<li>{escape(item)}" for item in items[:20])
                    more = f"<p>and {len(items) - 20} more</p>" if len(items) > 20 else ""
                    parts.append(f"<details><summary>{title}: {len(items)}</summary><ul>{shown}</ul>{more}</details>")
    return "".join(parts)


def timeline(marks: Sequence[Mark], done: Sequence[float], end: float) -> str:
    """An SVG until `end`: when each object was done, and two lanes an actor, its passes and its writes."""
    told = [mark for mark in marks if _drawn(mark)]
    lanes = sorted({_lane(mark) for mark in told}, key=lambda lane: (lane[0], not lane[1]))
    room, longest = WIDTH - LEFT - 10, log1p(max(end, EARLY) / EARLY)

    def x(at: float) -> float:
        return LEFT + round(room * log1p(max(0.0, at) / EARLY) / longest / COLUMN) * COLUMN

    parts = [_named(0, "done"), _ticks("done", 0, {x(at) for at in done})]
    for row, (who, passes) in enumerate(lanes, start=1):
        own = [mark for mark in told if _lane(mark) == (who, passes)]
        parts.append(_named(row, f"{who} {'passes' if passes else 'writes'}"))
        parts.append(_ticks("reconcile" if passes else "write", row, {x(mark.at) for mark in own if not _bad(mark)}))
        parts.append(_failures(row, own, x))
    base = LANE * (len(lanes) + 1) + 8
    parts.append(f'<path class="axis" d="M{LEFT} {base}H{WIDTH}"/>')
    ticks = [0.0, *(tick for tick in TICKS if x(end) - x(tick) > ROOM), end]
    parts.extend(f'<text x="{x(at):g}" y="{base + 15}" text-anchor="middle">{_label(at)}</text>' for at in ticks)
    size = f"0 0 {WIDTH + 30} {base + 22}"
    return f'<svg viewBox="{size}" role="img" aria-label="timeline">{"".join(parts)}</svg>'


def duration(seconds: float | None) -> str:
    """A time as people say it."""
    if seconds is None:
        return "never"
    if seconds < 59.995:
        return f"{seconds:.2f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s"


def _label(at: float) -> str:
    return duration(at).removesuffix("00s") if at >= 60 else f"{at:.3g}s"


def _named(row: int, name: str) -> str:
    return f'<text x="0" y="{LANE * row + 17}">{escape(name)}</text>'


def _ticks(kind: str, row: int, at: Iterable[float]) -> str:
    lines = "".join(f"M{place:g} {LANE * row + 4}v{LANE - 6}" for place in sorted(at))
    return f'<path class="{kind}" d="{lines}"/>' if lines else ""


def _failures(row: int, marks: Iterable[Mark], x: Callable[[float], float]) -> str:
    """Each with what it was; those on top of each other are counted."""
    columns: dict[float, list[Mark]] = {}
    for mark in marks:
        if _bad(mark):
            columns.setdefault(x(mark.at), []).append(mark)
    drawn = []
    for place, them in columns.items():
        first = them[0]
        said = f"{first.at:.3f} s {first.what} {first.about}" + (f", and {len(them) - 1} more" if them[1:] else "")
        drawn.append(f'<path d="M{place:g} {LANE * row + 4}v{LANE - 6}"><title>{escape(said)}</title></path>')
    return f'<g class="bad">{"".join(drawn)}</g>' if drawn else ""


def _drawn(mark: Mark) -> bool:
    return mark.what != "GET"


def _lane(mark: Mark) -> tuple[str, bool]:
    return mark.who, mark.what == "reconcile"


def _bad(mark: Mark) -> bool:
    return mark.code == (1 if mark.what == "reconcile" else 409)


def _table(rows: Mapping[str, dict[str, Any]]) -> str:
    head = ("", "409 conflict", "409 exists", "requests", "watch events", "p50", "p99", "last", "lost", "stuck")
    lines = []
    for way, row in rows.items():
        times = [duration(t) for t in row["seconds_to_done"].values()]
        counts = [row[key] for key in ("conflicts", "already_exists", "requests", "watch_events")]
        cells = "".join(f"<td>{escape(str(cell))}" for cell in (way, *counts, *times, row["lost"], row["stuck"]))
        lines.append(f"<tr>{cells}")
    return f"<div class=wide><table><tr>{''.join(f'<th>{name}' for name in head)}{''.join(lines)}</table></div>"
