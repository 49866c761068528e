"""A page that opens offline: for each system and way a timeline of reconciles, writes and conflicts, and the figures.

One file, no script, nothing loaded. All text that comes from objects is escaped.
"""

from collections.abc import Mapping
from html import escape
from typing import Any, Protocol

WIDTH, LANE, LEFT = 900, 22, 110
MOST = 1500
"""Marks drawn in a lane: more lie on top of each other and only make the page heavy."""

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #ccc; --pass: #7a8aa0; --write: #2b6cb0;
  --bad: #c53030; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181c; --line: #444; --pass: #8797ad;
  --write: #63b3ed; --bad: #fc8181; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 0 auto; padding: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
svg { width: 100%; min-width: 36rem; height: auto; } svg text { fill: var(--ink); font-size: 12px; }
.axis { stroke: var(--line); } .reconcile { stroke: var(--pass); } .write { stroke: var(--write); }
.bad { stroke: var(--bad); stroke-width: 2; }
.key span { margin-right: 1.5rem; } .key .write { color: var(--write); } .key .bad { color: var(--bad); }
.key .reconcile { color: var(--pass); }
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
    """The page: of each system its scale and, by way, an outcome with `json()`, `marks`, `losses` and `stuck`."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>fairlead demo</title><style>{STYLE}</style><h1>Old way against new</h1>",
        "<p class=key><span class=reconcile>| a pass</span><span class=write>| a write</span>",
        "<span class=bad>| a conflict, or a pass that failed</span></p>",
    ]
    for system, (scale, outcomes) in told.items():
        parts.append(f"<h2>{escape(system)}, {scale} objects</h2>")
        parts.append(_table({str(way): outcome.json() for way, outcome in outcomes.items()}))
        for way, outcome in outcomes.items():
            parts.append(f"<h3>{escape(str(way))} way</h3><div class=wide>{timeline(outcome.marks)}</div>")
            for title, items in (("Lost", outcome.losses), ("Stuck", outcome.stuck)):
                if items:
                    shown = "".join(f"<li>{escape(item)}" for item in items[:20])
                    more = f"<p>and {len(items) - 20} more</p>" if len(items) > 20 else ""
                    parts.append(f"<details><summary>{title}: {len(items)}</summary><ul>{shown}</ul>{more}</details>")
    return "".join(parts)


def timeline(marks: list[Any]) -> str:
    """An SVG with two lanes an actor: its passes, and its writes. Time is drawn by its square root, so that both the
    first second and the silence after it can be seen."""
    told = [mark for mark in marks if mark.what != "GET"]
    lanes = sorted({(mark.who, mark.what == "reconcile") for mark in told}, key=lambda lane: (lane[0], not lane[1]))
    end = max((mark.at for mark in told), default=0.0) or 1.0
    height = LANE * len(lanes) + 30

    def x(at: float) -> float:
        return float(LEFT + (WIDTH - LEFT - 10) * (max(0.0, at) / end) ** 0.5)

    drawn = []
    for row, (who, passes) in enumerate(lanes):
        top = LANE * row + 4
        what = "passes" if passes else "writes"
        drawn.append(f'<text x="0" y="{top + 13}">{escape(who)} {what}</text>')
        own = [mark for mark in told if (mark.who, mark.what == "reconcile") == (who, passes)]
        bad = [mark for mark in own if _bad(mark)]
        step = max(1, len(own) // MOST)
        for mark in [*own[::step], *bad[:: max(1, len(bad) // MOST)]]:
            kind = "bad" if _bad(mark) else "reconcile" if passes else "write"
            said = f"{mark.at:.3f} s {mark.what} {mark.about}" + ("" if passes else f" {mark.code}")
            at = f"{x(mark.at):.1f}"
            line = f'<line class="{kind}" x1="{at}" x2="{at}" y1="{top}" y2="{top + LANE - 6}">'
            drawn.append(f"{line}<title>{escape(said)}</title></line>")
    base = height - 18
    drawn.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH}" y1="{base}" y2="{base}"/>')
    drawn.extend(
        f'<text x="{x(end * share):.0f}" y="{height - 4}" text-anchor="middle">{end * share:.1f} s</text>'
        for share in (0, 0.04, 0.16, 0.36, 0.64, 1)
    )
    return f'<svg viewBox="0 0 {WIDTH + 20} {height}" role="img" aria-label="timeline">{"".join(drawn)}</svg>'


def _bad(mark: Mark) -> bool:
    return mark.code == (1 if mark.what == "reconcile" else 409)


def _table(rows: Mapping[str, dict[str, Any]]) -> str:
    head = ("", "409 conflict", "409 exists", "requests", "watch events", "p50", "p99", "last", "lost", "stuck")
    lines = []
    for way, row in rows.items():
        times = [f"{t:.2f} s" if t is not None else "never" for t in row["seconds_to_done"].values()]
        counts = [row[key] for key in ("conflicts", "already_exists", "requests", "watch_events")]
        cells = "".join(f"<td>{escape(str(cell))}" for cell in (way, *counts, *times, row["lost"], row["stuck"]))
        lines.append(f"<tr>{cells}")
    return f"<div class=wide><table><tr>{''.join(f'<th>{name}' for name in head)}{''.join(lines)}</table></div>"
