"""The live page as HTML: an overview of the operator, and the passes over one object.

The server renders everything. The script of the page only fetches the page again and replaces the parts that changed.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import urlencode

from fairlead.api.history import FieldChange
from fairlead.api.history_text import format_seconds
from fairlead.report.diff import diff_lines
from fairlead.report.html import Html, join, tag
from fairlead.report.live import shapes

_STATE_TEXT = {
    "ready": "ready",
    "processing": "processing",
    "delayed": "delayed",
    "backoff": "back-off",
    "held": "held back",
    "idle": "idle",
    "failing": "failing",
}
_OUTCOME_TEXT = {"requeue_after": "success, later again", "requeue": "conflict, soon again"}


def render_overview(
    overview: shapes.Overview, objects: shapes.ObjectList, *, search: str, state: str, controller: str
) -> Html:
    """Return the page with the controllers, the passes in flight, and the objects that match the search."""
    return _document(
        overview.operator,
        overview.operator,
        _status(overview),
        tag("section", tag("h2", "Controllers"), _controllers(overview.controllers), id="controllers", data_live=True),
        tag("section", *_running(overview), id="running", data_live=True),
        tag(
            "section",
            tag("h2", "Objects"),
            _search_form(overview.controllers, search, state, controller),
            tag("div", *_objects(overview, objects, search, state, controller), id="objects", data_live=True),
        ),
    )


def render_object(details: shapes.ObjectDetails) -> Html:
    """Return the page with the passes over one object."""
    name = describe_ref(details.summary.object)
    return _document(
        f"{name} · {details.operator}",
        details.operator,
        tag("nav", tag("a", "All objects", href="/"), aria_label="Back"),
        tag("h2", name),
        tag(
            "div",
            _facts(details),
            tag("ul", *(tag("li", note) for note in details.notes), class_="notes") if details.notes else None,
            tag("h3", f"The last {len(details.history)} passes" if len(details.history) > 1 else "Passes"),
            *(_pass(each, details.time, is_open=index == 0) for index, each in enumerate(details.history)),
            None if details.history else tag("p", "No pass has started yet."),
            id="object",
            data_live=True,
        ),
    )


def render_error(operator: str, message: str) -> Html:
    """Return a page with an error."""
    return _document(
        f"Not found · {operator}", operator, tag("p", message), tag("p", tag("a", "All objects", href="/"))
    )


def _document(title: str, operator: str, *content: Html) -> Html:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="stylesheet", href="/assets/page.css"),
        tag("script", src="/assets/page.js", defer=True),
    )
    header = tag(
        "header",
        tag("h1", operator),
        tag("button", "Pause", id="pause", type="button", aria_pressed="false", hidden=True),
        tag("span", id="status", role="status"),
    )
    body = tag(
        "body", tag("a", "Skip to content", href="#main", class_="skip"), header, tag("main", *content, id="main")
    )
    return join(Html("<!doctype html>"), tag("html", head, body, lang="en"))


def _status(overview: shapes.Overview) -> Html:
    problems = [f"{name}: {problem}" for name, problem in sorted(overview.problems.items())]
    if not overview.is_leading:
        problems.append("This process is not the leader, or its caches are not filled yet: it starts no passes")
    notes = tag("ul", *(tag("li", problem) for problem in problems), class_="notes") if problems else None
    return tag("div", notes, id="problems", data_live=True)


def _table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[object]], class_: str = "") -> Html:
    """Return a table. On narrow screens, each cell has its column's name beside it."""
    names = list(columns)
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in names)))
    body = [
        tag("tr", *(tag("td", cell, data_label=name) for name, cell in zip(names, row, strict=True))) for row in rows
    ]
    return tag("table", tag("caption", caption), head, tag("tbody", *body), class_=class_ or None)


def _controllers(controllers: list[shapes.Controller]) -> Html:
    rows = [
        [
            tag("a", each.name, href=_link(controller=each.name)),
            each.kind,
            *(_count(each.queue[state], each.name, state) for state in shapes.QUEUE_STATES),
            _count(each.failing, each.name, "failing"),
        ]
        for each in controllers
    ]
    columns = ["Controller", "Kind", *(_STATE_TEXT[state].capitalize() for state in shapes.QUEUE_STATES), "Failing"]
    return _table("The queue of each controller", columns, rows, "numbers")


def _count(count: int, controller: str, state: str) -> object:
    if not count:
        return 0
    link = tag("a", f"{count:,}", href=_link(controller=controller, state=state))
    return tag("strong", link, class_="bad") if state == "failing" else link


def _running(overview: shapes.Overview) -> Iterable[Html]:
    yield tag("h2", f"Passes in flight: {len(overview.running) + overview.more_running}")
    if overview.running:
        rows = [
            [_object_link(each.object), format_seconds(each.seconds), _causes(each), len(each.steps) + each.more_steps]
            for each in overview.running
        ]
        yield _table("The oldest first", ["Object", "Running for", "Woken by", "Steps"], rows)
    if overview.more_running:
        yield tag("p", f"and {overview.more_running} more")


def _search_form(controllers: list[shapes.Controller], search: str, state: str, controller: str) -> Html:
    def select(label: str, name: str, chosen: str, options: Iterable[tuple[str, str]]) -> Html:
        items = [
            tag("option", title, value=value, selected=value == chosen) for value, title in [("", "all"), *options]
        ]
        return tag("label", label, tag("select", *items, name=name, id=name))

    return tag(
        "form",
        tag("label", "Search", tag("input", type="search", name="search", id="search", value=search,
                                   placeholder="parts of kind, namespace or name", autocomplete="off")),
        select("State", "state", state, _STATE_TEXT.items()),
        select("Controller", "controller", controller, [(each.name, each.name) for each in controllers]),
        tag("button", "Search", type="submit"),
        role="search",
        action="/",
    )  # fmt: skip


def _objects(
    overview: shapes.Overview, objects: shapes.ObjectList, search: str, state: str, controller: str
) -> Iterable[Html]:
    count = "1 object" if objects.total == 1 else f"{objects.total:,} objects"
    first, last = objects.offset + 1, objects.offset + len(objects.items)
    shown = f", {first:,} to {last:,} shown" if objects.items and objects.total > len(objects.items) else ""
    yield tag("p", f"{count}{shown}. The latest pass is first.")
    if objects.items:
        rows = [
            [
                _object_link(each.object),
                _state(each.state, each.next_look),
                _ago(each.last_pass.started, overview.time) if each.last_pass else "",
                _outcome(each.last_pass, each.failures) if each.last_pass else "",
                _causes(each.last_pass) if each.last_pass else "",
            ]
            for each in objects.items
        ]
        yield _table("Objects that had a pass", ["Object", "State", "Last pass", "Result", "Woken by"], rows)
    pages = [
        ("Previous page", objects.offset - objects.limit, objects.offset > 0),
        ("Next page", objects.offset + objects.limit, last < objects.total),
    ]
    links = [
        tag(
            "a",
            title,
            href=_link(search=search, state=state, controller=controller, offset=str(max(0, offset))),
            id=title.split()[0].lower(),
        )
        for title, offset, exists in pages
        if exists
    ]
    if links:
        yield tag("nav", *links, aria_label="Pages")


def _facts(details: shapes.ObjectDetails) -> Html:
    summary = details.summary
    facts = {
        "Controller": summary.controller,
        "State": _state(summary.state, summary.next_look),
        "Passes since the start": f"{summary.passes:,}",
        "Failures in a row": tag("strong", summary.failures, class_="bad") if summary.failures else 0,
        "Exists": "yes" if details.is_cached else "no: it is deleted, or not watched",
        "API version": summary.object.api_version,
    }
    return tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in facts.items()))


def _pass(each: shapes.Pass, now: float, *, is_open: bool) -> Html:
    started = datetime.fromtimestamp(each.started, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    took = f"running for {format_seconds(each.seconds)}" if each.is_running else format_seconds(each.seconds)
    summary = tag(
        "summary",
        _ago(each.started, now),
        " ",
        _outcome(each),
        tag("span", f" after {took}" if not each.is_running else f" {took}", class_="dim"),
        tag("span", join(" woken by ", _causes(each))),
    )
    later = f", next pass after {format_seconds(each.next_look)}" if each.next_look is not None else ""
    return tag(
        "details",
        summary,
        tag("p", tag("time", started, datetime=started), f", pass {each.id}{later}", class_="dim"),
        tag("p", each.message, class_="message") if each.message else None,
        tag("ol", *(_step(step) for step in each.steps)),
        tag("p", f"and {each.more_steps} more steps") if each.more_steps else None,
        id=f"pass-{each.id}",
        open=is_open,
    )


def _step(step: shapes.Step) -> Html:
    is_failure = step.point == "written" and step.outcome not in (
        "created", "changed", "unchanged", "deleted", "deleting",
    )  # fmt: skip
    lines = diff_lines(FieldChange(change.path, change.old, change.new) for change in step.changes)
    rows = [tag("span", line, class_="added" if line[0] == "+" else "removed") for line in lines]
    diff = tag("pre", *rows, tabindex="0", role="region", aria_label="changed fields") if rows else None
    return tag("li", step.text, diff, class_="bad" if is_failure else step.point)


def _outcome(each: shapes.Pass, failures: int = 0) -> Html:
    words = _OUTCOME_TEXT.get(each.outcome, each.outcome) or "running"
    reason = f": {each.reason}" if each.reason and each.reason != "Reconciled" else ""
    times = f", {failures} times" if failures > 1 else ""
    return tag("span", f"{words}{reason}{times}", class_="bad" if each.outcome == "error" else "outcome")


def _state(state: str, next_look: float | None) -> Html:
    later = f", next pass in {format_seconds(next_look)}" if next_look is not None else ""
    return tag("span", f"{_STATE_TEXT[state]}{later}", class_=f"state {state}")


def _causes(each: shapes.Pass) -> Html:
    return tag("span", "; ".join(each.causes) or "unknown", class_="causes")


def _ago(then: float, now: float) -> str:
    return f"{format_seconds(max(0.0, now - then)) if now - then >= 1 else '0 s'} ago"


def _object_link(ref: shapes.Ref) -> Html:
    query = {"kind": _kind_name(ref), "namespace": ref.namespace or "", "name": ref.name}
    return tag("a", describe_ref(ref), href=f"/object?{urlencode(query)}")


def _kind_name(ref: shapes.Ref) -> str:
    group = ref.api_version.rpartition("/")[0]
    return f"{ref.kind}.{group}" if group else ref.kind


def describe_ref(ref: shapes.Ref) -> str:
    """Return `Kind namespace/name`."""
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"


def _link(**query: str) -> str:
    return "/?" + urlencode({name: value for name, value in query.items() if value})
