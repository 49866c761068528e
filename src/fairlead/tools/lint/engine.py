"""Run the rules over a source tree."""

from __future__ import annotations

import functools
import gc
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fairlead.tools.lint.analysis.program import Program
from fairlead.tools.lint.analysis.values import Trace
from fairlead.tools.lint.findings import Finding, Level, Rule
from fairlead.tools.lint.golang.module import SourceTree
from fairlead.tools.lint.golang.parsing import parse_file
from fairlead.tools.lint.golang.syntax import FunctionDecl, GoFile
from fairlead.tools.lint.models import Models, load_models
from fairlead.tools.lint.parallel import map_files
from fairlead.tools.lint.python_rules import lint_python
from fairlead.tools.lint.rules import GO_RULES
from fairlead.tools.lint.rules.table import select_rules
from fairlead.tools.lint.source_tree import find_sources
from fairlead.tools.lint.suppressions import Suppression, apply_suppressions, read_suppression

REQUEST = re.compile(
    rb"\.(Patch|Update|UpdateStatus|Create|Apply|Delete|Get|List|GetByKey|ByIndex)\(|RetryOnConflict|CreateOr|Lister|"
    rb"event\.|EventHandler|AddFunc|UpdateFunc"
)
"""Functions that may send a request or hold an object of a cache. Others matter only if they call one of these."""
READS_STATUS = re.compile(rb"(if|switch|case) [^\n]*Status\.\w")
CALLED = re.compile(rb"(\w+)\(")
MAX_ROUNDS = 4
COMMAND_LINE_PATH = re.compile(
    r"(^|/)(cmd|hack|tests?|e2e|testing|examples?|samples?|install|installer|cli|tools?|scripts?|\w*ctl|kubectl-[\w-]+|"
    r"conformance[\w-]*|testutils?|fixtures|mocks?|fakes?)/"
)
"""Programs that a person runs, and test tools: findings there are reported as info."""


Progress = Callable[[str, int, int], None]
"""Is called with what is counted ("files", "functions"), how many are done, and how many there are."""
Item = TypeVar("Item")


@dataclass(slots=True)
class Report:
    """The findings, and what could not be looked at."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: int = 0
    lines: int = 0
    functions: int = 0


def lint(
    root: Path,
    selected: tuple[str, ...] = (),
    models: Models | None = None,
    progress: Progress | None = None,
    jobs: int = 1,
) -> Report:
    """Lint the Go and Python files below `root`, and read them in `jobs` processes.

    Guarantees: the report does not depend on `jobs`.
    """
    rules = select_rules(selected)
    with fewer_collections():
        return _lint(root, rules, models, progress or ignore_progress, jobs)


def ignore_progress(_what: str, _done: int, _total: int) -> None:
    """Report nothing."""


def counted(items: Iterable[Item], what: str, total: int, progress: Progress) -> Iterator[Item]:
    """Yield the items, and report every hundredth."""
    for number, item in enumerate(items):
        if number % 100 == 0:
            progress(what, number, total)
        yield item
    progress(what, total, total)


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Let the garbage collector run rarely: the analysis keeps nearly all that it creates."""
    threshold = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    yield
    gc.set_threshold(*threshold)


def _lint(root: Path, rules: tuple[Rule, ...], models: Models | None, progress: Progress, jobs: int) -> Report:
    sources = find_sources(root)
    report = Report(notes=list(sources.notes))
    files = parse_sources(root, sources.go, report, progress, jobs)
    report.files, report.lines = len(files), sum(file.lines for file in files)
    program = Program(SourceTree(files, sources.modules), models or load_models())
    functions = relevant_functions(program, files, progress)
    report.functions = len(functions)
    program.look_at(functions)
    program.look_at_conditions(
        function for file in files for function in file.functions if READS_STATUS.search(function.text)
    )
    for function in functions:
        report.findings += judge(program, function, rules)
    report.findings = unique(report.findings)
    suppressions = [s for file in files for s in suppressions_of(file)]
    suppressions += lint_python_files(root, sources.python, rules, report, progress, jobs)
    report.findings = unique(apply_suppressions(report.findings, suppressions, rules))
    if not files and not sources.python:
        report.notes.append("there is no Go or Python source here")
    return report


def lint_python_files(
    root: Path, paths: Sequence[str], rules: tuple[Rule, ...], report: Report, progress: Progress, jobs: int
) -> list[Suppression]:
    """Add the findings in Python modules, and return their suppression comments."""
    wanted = {rule.code for rule in rules}
    suppressions: list[Suppression] = []
    results = map_files(functools.partial(lint_python_file, root), paths, jobs)
    for module in counted(results, "Python files", len(paths), progress):
        report.notes += module.notes
        report.files += module.files
        report.lines += module.lines
        report.findings += [finding for finding in module.findings if finding.rule.code in wanted]
        suppressions += module.suppressions
    return suppressions


@dataclass(slots=True)
class PythonReport(Report):
    """The report of one Python module."""

    suppressions: list[Suppression] = field(default_factory=list)


def lint_python_file(root: Path, path: str) -> PythonReport:
    try:
        source = (root / path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return PythonReport(notes=[f"{path}: skipped, it cannot be read: {error.strerror}"])
    findings, comments, functions, note = lint_python(path, source)
    for finding in findings:
        if COMMAND_LINE_PATH.search(path):
            finding.level = Level.INFO
    read = (read_suppression(path, line, text, functions) for line, text in comments)
    return PythonReport(
        findings=findings,
        notes=[note] if note else [],
        files=1,
        lines=source.count("\n") + 1,
        suppressions=[suppression for suppression in read if suppression is not None],
    )


def suppressions_of(file: GoFile) -> Iterator[Suppression]:
    functions = [(function.line, function.last_line) for function in file.functions] if file.suppressions else []
    for line, text in file.suppressions:
        found = read_suppression(file.path, line, text, functions)
        if found is not None:
            yield found


def relevant_functions(program: Program, files: list[GoFile], progress: Progress) -> list[FunctionDecl]:
    """Return the functions that send requests, and those that call one of them."""
    everything = [function for file in files if not file.is_generated for function in file.functions]
    fresh = [function for function in everything if REQUEST.search(function.text)]
    chosen = set(fresh)
    calls = {function: set(CALLED.findall(function.text)) for function in everything if function not in chosen}
    for _ in range(MAX_ROUNDS):
        # The order is that of the source: functions that call each other are traced in the same order in each run.
        traced = counted(fresh, "functions", len(fresh), progress)
        names = {f.name.encode() for f in traced if program.effects(program.trace(f))}
        fresh = [function for function, called in calls.items() if not names.isdisjoint(called)]
        for function in fresh:
            del calls[function]
        chosen.update(fresh)
        if not fresh:
            break
    return [function for function in everything if function in chosen]


def parse_sources(root: Path, paths: Sequence[str], report: Report, progress: Progress, jobs: int) -> list[GoFile]:
    files: list[GoFile] = []
    results = map_files(functools.partial(parse_source, root), paths, jobs)
    for file, note in counted(results, "Go files", len(paths), progress):
        files += [file] if file is not None else []
        report.notes += [note] if note else []
    return files


def parse_source(root: Path, path: str) -> tuple[GoFile | None, str]:
    """Return a parsed file, and a line about what could not be read."""
    try:
        file = parse_file(path, (root / path).read_bytes())
    except OSError as error:
        return None, f"{path}: skipped, it cannot be read: {error.strerror}"
    errors = file.errors
    return file, f"{path}: {errors} places are not understood and were skipped: is it valid Go?" if errors else ""


def judge(program: Program, function: FunctionDecl, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    trace: Trace = program.trace(function)
    wanted = {rule.code for rule in rules}
    for codes, check in GO_RULES:
        if not wanted.isdisjoint(codes):
            for finding in check(program, trace):
                if finding.rule.code in wanted:
                    finding.function = finding.function or function.title
                    if COMMAND_LINE_PATH.search(finding.file):
                        finding.level = Level.INFO
                    yield finding


def unique(findings: list[Finding]) -> list[Finding]:
    """Drop findings of the same rule at the same line, and sort."""
    seen: dict[tuple[str, str, int], Finding] = {}
    for finding in findings:
        key = (finding.rule.code, finding.file, finding.line)
        if key not in seen or (seen[key].level is Level.INFO and finding.level is Level.WARN):
            seen[key] = finding
    return sorted(seen.values(), key=lambda f: (f.file, f.line, f.rule.code))
