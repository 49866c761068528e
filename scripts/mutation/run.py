"""Take each guard of the writes and of the queue out singly and see a test fail: `python scripts/mutation/run.py`.

Each mutant is one module with one piece of text changed, in a process of its own that runs the tests of that room on
the embedded server until the first fails. A guard whose mutant survives is not held by any test: the run then fails.
A mutant whose tests do not end is found out too. For that the tests are timed without a mutant first, and once more
before the verdict, so that a machine that became slow finds nothing out. The random histories are asked as well.
Beside the guards by name, a sample of mutants of no particular guard (conditions turned round, effects left out) gives
a score. `--table FILE` writes docs/evidence/guards.md; words choose guards: `run.py finalizer queue`; the other rows
of the table stay as an earlier run left them.
"""

import argparse
import functools
import importlib.abc
import importlib.util
import math
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import generic
import hypothesis
import pytest
from guards import MUTANTS

# Loaded once for all mutants; nothing that is mutated may be among them.
import fairlead.client.http
import fairlead.server.app  # noqa: F401

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairlead"
HISTORIES = ["tests/writes/test_histories.py"]
TESTS = {
    "writes": ["tests/writes", "tests/hazards", "--deselect", "tests/writes/test_histories.py",
               "--ignore", "tests/writes/test_contention.py", "--ignore", "tests/writes/test_commands.py"],
    "queue": ["tests/queue/test_queue.py", "tests/queue"],
    "cache": ["tests/cache/test_own_writes.py", "tests/cache"],
    "runtime": ["tests/runtime/test_controller.py", "tests/runtime"],
    "orphans": ["tests/orphans/test_histories.py"],  # they alone: each guard is for something that they play
}  # fmt: skip
# The tests that speak of a module go first, so that what they catch is caught soon.
FIRST = {
    "apply": "test_apply.py", "payload": "test_apply.py", "no_op": "test_no_op.py", "decide": "test_decide.py",
    "guarded_patch": "test_decide.py", "purity": "test_decide.py", "json_patch": "test_decide.py",
    "tracked": "test_tracked.py", "access_log": "test_tracked.py", "draft": "test_tracked.py",
    "finalizers": "test_finalizers.py", "status": "test_status.py", "migrate": "test_migrate.py",
    "delete": "test_delete.py", "prune": "test_prune.py", "create": "test_create.py", "defaults": "test_defaults.py",
    "writer": "test_edge_cases.py",
}  # fmt: skip
PATIENCE = 5  # times as long as they take without a mutant, tests may take with one
LEAST = 60.0  # seconds that they may take at least

# The examples that every run has; the tests' own profile is registered only once they are loaded.
SAME = hypothesis.settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)

TIMED_OUT = "timed out"
FOUND = {True: "found", False: "not found"}
NOT_ASKED = "not asked"
NONE = "**none**"
SCORE = "Of"  # how the line of generic mutants begins
HEADING = """# Guards

Each guard of the write disciplines and of the queue, and the first test that failed when that guard alone was taken out
of the code. Made by `make mutate`, on the embedded server.

These tests aim at their guard. The random histories (`tests/writes/test_histories.py`), which aim at nothing, are asked
beside them about each guard of the writes. "Timed out": no test failed, and they did not end.
"""


class _Overlay(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """One module with another text."""

    def __init__(self, file: str, text: str) -> None:
        self.name = "fairlead." + file.removesuffix(".py").replace("/", ".")
        self.path, self.text = str(PACKAGE / file), text

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self, origin=self.path) if name == self.name else None

    def exec_module(self, module):
        module.__file__ = self.path
        exec(compile(self.text, self.path, "exec"), module.__dict__)


def killed_by(file: str, text: str, tests: list[str], first: list[str]) -> str | None:
    """The first test that fails with that text of the file, TIMED_OUT if they do not end, or None."""
    measured = taken(tuple(tests))
    while True:
        code, said = outcome(file, text, [*first, *tests], max(LEAST, PATIENCE * measured))
        if code is not None:
            break
        measured, before = _unmutated(tests), measured
        if measured < 1.5 * before:
            return TIMED_OUT
    if code == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[| |$)", said, re.MULTILINE)
    if not found:
        sys.exit(f"the tests did not run: {said}")
    return found.group(1)


@functools.cache
def taken(tests: tuple[str, ...]) -> float:
    """Seconds that the tests take without a mutant."""
    return _unmutated(list(tests))


def _unmutated(tests: list[str]) -> float:
    begin = time.monotonic()
    code, said = outcome(None, "", tests, math.inf)
    if code != 0:
        sys.exit(f"the tests fail without a mutant: {said}")
    return time.monotonic() - begin


def outcome(file: str | None, text: str, tests: list[str], longest: float) -> tuple[int | None, str]:
    """The exit code of the tests, None if they had to be ended, and what they said."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = _tested(file, text, tests, output.fileno())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = _wait(child, longest)
        output.seek(0)
        return code, output.read().decode(errors="replace")


def _tested(file: str | None, text: str, tests: list[str], output: int) -> int:
    os.setsid()
    for fd in (1, 2):
        os.dup2(output, fd)
    without_shrinking = list(hypothesis.Phase)[:3]
    hypothesis.settings.register_profile("once", hypothesis.settings(SAME, phases=without_shrinking))
    if file is not None:
        overlay = _Overlay(file, text)
        sys.meta_path.insert(0, overlay)
        try:
            importlib.import_module(overlay.name)  # before pytest puts a finder of its own in front
        except Exception as error:
            print(f"FAILED import: {error}")
            return 1
    loaded = ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    alone = ["--timeout", "0", "--hypothesis-profile", "once"]
    return pytest.main(["-q", "-x", "-m", "not real", *loaded, *alone, *tests])


def _wait(child: int, longest: float) -> int | None:
    """Its exit code; None if it had to be ended."""
    deadline = time.monotonic() + longest
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # it leads no group yet
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def tests_of(file: str) -> tuple[list[str], list[str]]:
    """The tests of a module, and those of them that go first."""
    room, _, module = file.removesuffix(".py").partition("/")
    return TESTS[room], [f"tests/writes/{FIRST[module]}"] if room == "writes" and module in FIRST else []


def named(words: list[str], kept: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Each guard that has one of the words, and its row of the table. Of those kept only the histories are asked."""
    for mutant in MUTANTS:
        asked = mutant.file.startswith("writes/")
        if (words and not any(word in mutant.guard for word in words)) or (kept and not asked):
            continue
        text = (PACKAGE / mutant.file).read_text()
        if text.count(mutant.old) != 1:
            sys.exit(
                f"{mutant.guard}: {mutant.file} has {mutant.old!r} {text.count(mutant.old)} times: correct guards.py"
            )
        text = text.replace(mutant.old, mutant.new)
        if mutant.guard in kept:
            test = kept[mutant.guard].split(" | ")[1]
        else:
            test = _shown(killed_by(mutant.file, text, *tests_of(mutant.file)))
        seen = FOUND[killed_by(mutant.file, text, HISTORIES, []) is not None] if asked else NOT_ASKED
        print(f"{'NOT HELD' if test == NONE else 'held':8}  {mutant.guard:60}  {test}  {seen}", flush=True)
        yield mutant.guard, f"| {mutant.guard} | {test} | {seen} |"


def _shown(test: str | None) -> str:
    if test is None:
        return NONE
    return TIMED_OUT if test == TIMED_OUT else f"`{test.rpartition('::')[2]}`"


def sampled(count: int, seed: int) -> tuple[list[str], int, int]:
    """The survivors of a sample of generic mutants, how many were killed, and how many there are to choose from."""
    every = [
        (str(path.relative_to(PACKAGE)), change)
        for room in ("writes", "queue")
        for path in sorted((PACKAGE / room).glob("*.py"))
        for change in generic.changes(path.read_text())
    ]
    survivors = []
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    for number, (file, change) in enumerate(chosen, 1):
        test = killed_by(file, change.text, *tests_of(file))
        said = f"{file}:{change.line}: {change.old} → {change.new}"
        print(
            f"{number:4}  {'killed' if test else 'SURVIVED':8}  {said}  {(test or '').rpartition('::')[2]}", flush=True
        )
        if not test:
            survivors.append(said)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} generic mutants are killed, a sample of {len(every)}")
    return survivors, len(chosen) - len(survivors), len(every)


def earlier(table: Path) -> tuple[dict[str, str], list[str]]:
    """The rows of an earlier run by guard, and what it said of generic mutants."""
    lines = table.read_text().splitlines() if table.exists() else []
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}
    score = next((n for n, line in enumerate(lines) if line.startswith(SCORE)), len(lines) + 1)
    return rows, lines[score - 1 :]


def write(table: Path, ran: dict[str, str], score: list[str] | None) -> None:
    """The table with these rows, and what an earlier run left of the others and of generic mutants."""
    kept, said = earlier(table)
    rows = [row for mutant in MUTANTS if (row := (kept | ran).get(mutant.guard))]
    held = sum(NONE not in row for row in rows)
    asked = [row for row in rows if not row.endswith(f"| {NOT_ASKED} |")]
    found = sum(row.endswith(f"| {FOUND[True]} |") for row in asked)
    lines = [HEADING, "| guard | the test that fails without it | random histories |", "|---|---|---|", *rows, ""]
    lines.append(f"{held} of {len(MUTANTS)} guards are held.")
    if asked:
        lines.append(
            f"The random histories were asked about {len(asked)} and find {found}; the tests that aim at the others"
        )
        lines.append("alone hold those.")
    table.write_text("\n".join([*lines, *(said if score is None else score)]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="write the table of guards and tests there, after each guard")
    parser.add_argument("--histories", action="store_true", help="ask the histories alone; the table has the tests")
    parser.add_argument("--generic", type=int, default=0, metavar="N", help="and N mutants of no particular guard")
    parser.add_argument("--seed", type=int, default=0, help="of their sample")
    parser.add_argument("only", nargs="*", help="words of the guards to run")
    options = parser.parse_args()
    if options.histories and not options.table:
        parser.error("--histories needs the --table of an earlier run")
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    ran: dict[str, str] = {}
    kept = earlier(options.table)[0] if options.histories else {}
    for guard, row in named(options.only, kept):
        ran[guard] = row
        if options.table:
            write(options.table, ran, None)
    held = sum(NONE not in row for row in ran.values())
    print(f"{held} of {len(ran)} guards are held by a test")
    if options.generic:
        survivors, killed, every = sampled(options.generic, options.seed)
        said = (
            f"(conditions turned round, effects left out; a sample of {every}, seed {options.seed}) {killed} are killed"
        )
        total = killed + len(survivors)
        score = ["", f"{SCORE} {total} mutants of no particular guard", f"{said}.{' The others:' if survivors else ''}"]
        score += ["", *(f"- `{survivor}`" for survivor in survivors)] if survivors else []
        if options.table:
            write(options.table, ran, score)
    sys.exit(held < len(ran))


if __name__ == "__main__":
    main()
