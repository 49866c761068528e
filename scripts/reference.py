"""Write the reference pages that come from the code: `python scripts/reference.py [--check]`.

    docs/reference/commands.md   every command, option and environment variable, from the command line itself
    docs/reference/errors.md     every exception of fairlead.errors, from its docstring
    docs/reference/metrics.md    every metric of an operator, from its registry
    docs/reference/debug.md      the JSON that the live page of an operator serves, from its types
    docs/reference/settings.md   every setting of a controller with its default and the reason

`--check` writes nothing, and exits with 1 if a page is not what it would write.
"""

import ast
import inspect
import re
import sys
from pathlib import Path

import click

from fairlead import errors
from fairlead.cli import ALIASES, SECTIONS, main
from fairlead.report.live import shapes
from fairlead.runtime.metrics import Metrics
from fairlead.runtime.tuning import RUN_SETTINGS, SETTINGS

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
COMMANDS_TEXT = """\
Every option can also be set by an environment variable of the same name. If an option may be repeated, the variable
holds the values separated by spaces.

All commands exit with 0 on success, 1 if something was found or failed, 2 if the command could not run, and 130 after
Ctrl-C."""
METRICS_TEXT = """\
`fairlead run --health PORT` serves them at `/metrics`. Names that controller-runtime and client-go also use mean the
same here, so that their dashboards work.

## Metrics of your own

Declare them in the registry `op.metrics`, and they appear at `/metrics` too:

```python
from prometheus_client import Counter

import fairlead as fl

op = fl.Operator("greeter")
greetings = Counter("greetings", "Greetings sent", ["language"], registry=op.metrics)
greetings.labels("en").inc()
```

Metrics that are declared without a registry are served as well. A metric with the name of one of fairlead's is logged
and left out. Do not use names of objects as labels: each value is a time series.

## Metrics of the process

`process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_virtual_memory_bytes`, `process_open_fds`,
`process_max_fds` and `process_start_time_seconds` (on Linux), `python_gc_collections_total`,
`python_gc_objects_collected_total` and `python_info`, as prometheus_client reports them.

## Metrics of fairlead"""
SETTINGS_TEXT = """\
`fl.Operator(…)` takes all of them, for all of its controllers. `@op.reconcile(…)` takes all but the last two, for
one controller. `fairlead run` has an option for each."""
PRECEDENCE_TEXT = """\
If a setting of a controller is set in several places, the first of these decides:

1. the option with the controller's name: `--concurrency website=8`
2. `@op.reconcile(Website, concurrency=4)`
3. the option for all controllers: `--concurrency 16`
4. `fl.Operator("websites", concurrency=2)`
5. the default

A controller's name is the kind in lower case, or the `name=` of its `@op.reconcile`. `rate_limit` counts passes of the
controller, also retries. The passes of one second may start at once, and the others wait in the queue."""
DEBUG_TEXT = """\
`fairlead run --ui` serves this JSON beside the [page](../how-to/see-what-an-operator-is-doing.md). Only GET and HEAD
are answered. A request that names another host than loopback or one of `--ui-allow-host` is rejected with 403. For an
object that the operator does not know, the answer is 404 with `{"operator": …, "error": …}`.

| path | parameters | answer |
|---|---|---|
| `/debug` | | [Overview](#overview) |
| `/debug/objects` | `search`: words, each a part of kind, namespace or name; `state`: `ready`, `processing`, \
`delayed`, `backoff`, `held`, `idle` or `failing`; `controller`; `offset`; `limit`: at most 200, 50 by default \
| [ObjectList](#objectlist) |
| `/debug/object` | `kind`: the kind, its plural or the controller's name, with `.GROUP` or without; `name`; \
`namespace`: needed if several objects have the name | [ObjectDetails](#objectdetails) |

New fields may be added. Optional fields are present with their default value."""
NOTE = "<!-- Written by scripts/reference.py. Do not edit. -->\n"


def commands_page() -> str:
    lines = [
        "# Commands and options",
        NOTE,
        COMMANDS_TEXT,
    ]
    context = click.Context(main, info_name="fairlead")
    for section, commands in SECTIONS.items():
        lines += ["", f"## {section}"]
        for name in commands:
            command = main.get_command(context, name)
            assert command is not None
            lines += _describe(command, f"fairlead {name}")
    lines += ["", "## Renamed commands", "", "| old | new |", "|---|---|"]
    lines += [f"| `fairlead {old}` | `fairlead {new}` |" for old, new in ALIASES.items()]
    return "\n".join(lines) + "\n"


def _describe(command: click.Command, path: str) -> list[str]:
    context = click.Context(command, info_name=path)
    help_text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    lines = ["", f"### {path}", "", *_help_paragraphs(help_text)]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            lines += _describe(subcommand, f"{path} {name}")
        return lines
    usage = " ".join(command.collect_usage_pieces(context))
    lines += ["", f"    {path} {usage}", "", "| option | environment variable | meaning |", "|---|---|---|"]
    for option in command.params:
        if isinstance(option, click.Option):
            record = option.get_help_record(context)
            assert record is not None
            names, meaning = (_cell(cell) for cell in record)
            lines.append(f"| `{names}` | `{option.envvar}` | {meaning} |")
    return lines


def _help_paragraphs(text: str) -> list[str]:
    """Return the help text as Markdown. Paragraphs of example commands become code."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("fairlead "):
            lines += [*(f"    {line}" for line in paragraph.splitlines()), ""]
        else:
            lines += [*paragraph.splitlines(), ""]
    return lines[:-1]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def errors_page() -> str:
    lines = [
        "# Errors",
        NOTE,
        "Import them from `fairlead.errors`. Each names its cause and the remedy.",
        "",
        "| error | base | cause and remedy |",
        "|---|---|---|",
    ]
    for name in errors.__all__:
        error = getattr(errors, name)
        if isinstance(error, type) and issubclass(error, BaseException):
            description = " ".join(inspect.cleandoc(error.__doc__ or "").split())
            lines.append(f"| `{name}` | `{error.__base__.__name__}` | {_cell(description)} |")
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    lines = [
        "# Metrics",
        NOTE,
        METRICS_TEXT,
        "",
        "| metric | type | labels | meaning |",
        "|---|---|---|---|",
    ]
    registry = Metrics().registry
    collectors = {collector for collector in registry._collector_to_names if hasattr(collector, "_labelnames")}  # noqa: SLF001
    for collector in sorted(collectors, key=lambda item: item._name):  # noqa: SLF001
        (family,) = collector.describe() or collector.collect()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in collector._labelnames)  # noqa: SLF001
        lines.append(f"| `{name}` | {family.type} | {labels} | {_cell(family.documentation)} |")
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    lines = [
        "# Settings",
        NOTE,
        SETTINGS_TEXT,
        "",
        "| setting | option of `fairlead run` | default | meaning | reason of the default |",
        "|---|---|---|---|---|",
    ]
    for name, setting in (SETTINGS | RUN_SETTINGS).items():
        option = f"--{name.replace('_', '-')}"
        lines.append(
            f"| `{name}` | `{option}` | {setting.default:g} | {_cell(setting.help)} | {_cell(setting.reason)} |"
        )
    return "\n".join([*lines, "", PRECEDENCE_TEXT]) + "\n"


def debug_page() -> str:
    lines = ["# JSON of the live page", NOTE, DEBUG_TEXT]
    module = ast.parse(inspect.getsource(shapes))
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    answers = [shape.__name__ for shape in shapes.SHAPES.values()]
    for name in [*answers, *sorted(classes.keys() - {*answers, "Shape"})]:
        lines += [
            "",
            f"## {name}",
            "",
            ast.get_docstring(classes[name]) or "",
            "",
            "| field | type | meaning |",
            "|---|---|---|",
        ]
        body = classes[name].body
        for statement, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                has_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                meaning = " ".join(str(after.value.value).split()) if has_text else ""
                field = getattr(shapes, name).__struct_encode_fields__[
                    getattr(shapes, name).__struct_fields__.index(statement.target.id)
                ]
                lines.append(
                    f"| `{field}` | {_json_type(ast.unparse(statement.annotation), classes)} | {_cell(meaning)} |"
                )
    return "\n".join(lines) + "\n"


def _json_type(annotation: str, classes: dict[str, ast.ClassDef]) -> str:
    """Return a Python type in the words of JSON, with a link if it is a type of this page."""
    collections = {"list": "list", "dict": "map"}
    words = {"str": "string", "float": "number", "int": "number", "bool": "boolean", "Any": "any value", "None": "null"}
    words |= {"QueueState": "string"} | {name: f"[{name}](#{name.lower()})" for name in classes}
    annotation = re.sub(
        r"Literal\[([^]]*)\]", lambda match: match[1].replace("'", "`").replace(", ", " or "), annotation
    )
    type_text = (
        re.sub(r"\b(\w+)\[", lambda match: f"{collections[match[1]]} of ", annotation)
        .replace("]", "")
        .replace(" | ", " or ")
    )
    return re.sub(r"(?<![`\w])\w+(?![`\w])", lambda match: words.get(match[0], match[0]), type_text).replace(
        ", ", " to "
    )


PAGES = {
    "commands.md": commands_page,
    "debug.md": debug_page,
    "errors.md": errors_page,
    "metrics.md": metrics_page,
    "settings.md": settings_page,
}


def run(*, check: bool) -> int:
    stale_pages = [name for name, page in PAGES.items() if _text(REFERENCE / name) != page()]
    for name in stale_pages:
        print(f"docs/reference/{name} is out of date: run python scripts/reference.py" if check else f"wrote {name}")
        if not check:
            (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
    return 1 if check and stale_pages else 0


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(run(check="--check" in sys.argv[1:]))
