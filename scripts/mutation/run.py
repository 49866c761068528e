"""Remove each guard of the writes, the queue and others alone, and check that a test fails.

    python scripts/mutation/run.py [WORD ...]    run the guards whose names contain one of the words, or all

Each mutant is one module with one piece of text changed. It runs in its own process, with the tests of its package on
the embedded server, until the first test fails. If no test fails, the guard has no test, and the run fails. A mutant
whose tests do not end counts as detected. For that, the tests are timed without a mutant first, and again before the
verdict, so that a slow machine is not mistaken for a detection. The random histories run for each mutant of the writes
too. Besides the guards by name, a sample of generic mutants (inverted conditions, omitted statements) gives a score.
`--table FILE` writes docs/evidence/guards.md. Rows of guards that do not run stay as an earlier run wrote them.
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

import aiohttp  # noqa: F401 - loaded once for all mutants, like the server: no mutated module may be among them
import generic
import hypothesis
import pytest
from guards import MUTANTS

import fairlead.server.app  # noqa: F401

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairlead"
HISTORIES = ["tests/writes/test_histories.py"]
TESTS = {
    "writes": ["tests/writes", "tests/hazards", "--deselect", "tests/writes/test_histories.py",
               "--ignore", "tests/writes/test_contention.py", "--ignore", "tests/writes/test_commands.py"],
    "client": ["tests/client"],
    "queue": ["tests/queue/test_queue.py", "tests/queue"],
    "cache": ["tests/cache/test_own_writes.py", "tests/cache"],
    "runtime": ["tests/runtime/test_controller.py", "tests/runtime"],
    "orphans": ["tests/orphans/test_histories.py"],  # Only these: they cover every guard of the package.
}  # fmt: skip
# The tests of a module run first, because they usually detect its mutants.
FIRST = {
    "apply": "test_apply.py", "payload": "test_apply.py", "no_op": "test_no_op.py", "decide": "test_decide.py",
    "guarded_patch": "test_decide.py", "purity": "test_decide.py", "json_patch": "test_decide.py",
    "tracked": "test_tracked.py", "access_log": "test_tracked.py", "draft": "test_tracked.py",
    "finalizers": "test_finalizers.py", "status": "test_status.py", "migrate": "test_migrate.py",
    "delete": "test_delete.py", "prune": "test_prune.py", "create": "test_create.py", "defaults": "test_defaults.py",
    "writer": "test_edge_cases.py", "context": "test_pruning.py",
}  # fmt: skip
TIMEOUT_FACTOR = 5  # Tests with a mutant may take this many times as long as without one.
MIN_TIMEOUT = 60.0  # seconds

# Every run uses the same examples. The tests' own profile is registered only when they are loaded.
DETERMINISTIC = hypothesis.settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)

TIMED_OUT = "timed out"
FOUND = {True: "found", False: "not found"}
NOT_RUN = "not run"
NONE = "**none**"
SCORE = "Of"  # The first word of the line about generic mutants.
HEADING = """# Guards

Each guard of the write functions, the cache, the queue and the runtime, and the first test that fails if that guard
alone is removed from the code. `make mutate` writes this table, on the embedded server.

These tests aim at their guard. The random histories (`tests/writes/test_histories.py`), which aim at no guard, run for
each guard of the writes too. "Timed out" means that no test failed, but the tests did not end.
"""


class _Overlay(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import hook that loads one module from a changed text."""

    def __init__(self, file: str, source: str) -> None:
        self.name = "fairlead." + file.removesuffix(".py").replace("/", ".")
        self.path, self.text = str(PACKAGE / file), source

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self, origin=self.path) if name == self.name else None

    def exec_module(self, module):
        module.__file__ = self.path
        exec(compile(self.text, self.path, "exec"), module.__dict__)


def find_failing_test(file: str, source: str, tests: list[str], first: list[str]) -> str | None:
    """Return the first test that fails with that text of the file, TIMED_OUT if the tests do not end, or None."""
    duration = measure(tuple(tests))
    while True:
        code, output = run_tests(file, source, [*first, *tests], max(MIN_TIMEOUT, TIMEOUT_FACTOR * duration))
        if code is not None:
            break
        duration, before = measure_again(tests), duration
        if duration < 1.5 * before:
            return TIMED_OUT
    if code == 0:
        return None
    match = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[| |$)", output, re.MULTILINE)
    if not match:
        sys.exit(f"the tests did not run: {output}")
    return match.group(1)


@functools.cache
def measure(tests: tuple[str, ...]) -> float:
    """Return how many seconds the tests take without a mutant."""
    return measure_again(list(tests))


def measure_again(tests: list[str]) -> float:
    begin = time.monotonic()
    code, output = run_tests(None, "", tests, math.inf)
    if code != 0:
        sys.exit(f"the tests fail without a mutant: {output}")
    return time.monotonic() - begin


def run_tests(file: str | None, source: str, tests: list[str], timeout: float) -> tuple[int | None, str]:
    """Return the exit code of the tests, or None after a timeout, and their output."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = _run_in_child(file, source, tests, output.fileno())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = _wait(child, timeout)
        output.seek(0)
        return code, output.read().decode(errors="replace")


def _run_in_child(file: str | None, source: str, tests: list[str], output: int) -> int:
    os.setsid()
    for fd in (1, 2):
        os.dup2(output, fd)
    without_shrinking = list(hypothesis.Phase)[:3]
    hypothesis.settings.register_profile("once", hypothesis.settings(DETERMINISTIC, phases=without_shrinking))
    if file is not None:
        overlay = _Overlay(file, source)
        sys.meta_path.insert(0, overlay)
        try:
            importlib.import_module(overlay.name)  # Before pytest installs its own import hook in front of this one.
        except Exception as error:
            print(f"FAILED import: {error}")
            return 1
    loaded = ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    alone = ["--timeout", "0", "--hypothesis-profile", "once"]
    return pytest.main(["-q", "-x", "-m", "not real", *loaded, *alone, *tests])


def _wait(child: int, timeout: float) -> int | None:
    """Return the exit code of the child, or None after a timeout."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        ended_pid, status = os.waitpid(child, os.WNOHANG)
        if ended_pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # It does not lead a process group yet.
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def tests_of(file: str) -> tuple[list[str], list[str]]:
    """Return the tests of a module, and those that run first."""
    package, _, module = file.removesuffix(".py").partition("/")
    return TESTS[package], [f"tests/{package}/{FIRST[module]}"] if module in FIRST else []


def run_guards(words: list[str], earlier_rows: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each selected guard and its row of the table. If there are earlier rows, run only the random histories."""
    for mutant in MUTANTS:
        has_histories = mutant.file.startswith("writes/")
        if (words and not any(word in mutant.guard for word in words)) or (earlier_rows and not has_histories):
            continue
        source = (PACKAGE / mutant.file).read_text()
        if source.count(mutant.old) != 1:
            sys.exit(
                f"{mutant.guard}: {mutant.file} has {mutant.old!r} {source.count(mutant.old)} times: correct guards.py"
            )
        source = source.replace(mutant.old, mutant.new)
        if mutant.guard in earlier_rows:
            test = earlier_rows[mutant.guard].split(" | ")[1]
        else:
            test = _format_test(find_failing_test(mutant.file, source, *tests_of(mutant.file)))
        history_verdict = (
            FOUND[find_failing_test(mutant.file, source, HISTORIES, []) is not None] if has_histories else NOT_RUN
        )
        print(f"{'NO TEST' if test == NONE else 'tested':8}  {mutant.guard:60}  {test}  {history_verdict}", flush=True)
        yield mutant.guard, f"| {mutant.guard} | {test} | {history_verdict} |"


def _format_test(test: str | None) -> str:
    if test is None:
        return NONE
    return TIMED_OUT if test == TIMED_OUT else f"`{test.rpartition('::')[2]}`"


def run_sample(count: int, seed: int) -> tuple[list[str], int, int]:
    """Run a sample of the generic mutants.

    Return the survivors, the number of detected mutants, and the total number.
    """
    every = [
        (str(path.relative_to(PACKAGE)), change)
        for package in ("writes", "queue")
        for path in sorted((PACKAGE / package).glob("*.py"))
        for change in generic.changes(path.read_text())
    ]
    survivors = []
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    for number, (file, change) in enumerate(chosen, 1):
        test = find_failing_test(file, change.text, *tests_of(file))
        description = f"{file}:{change.line}: {change.old} → {change.new}"
        print(
            f"{number:4}  {'detected' if test else 'SURVIVED':8}  {description}  {(test or '').rpartition('::')[2]}",
            flush=True,
        )
        if not test:
            survivors.append(description)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} generic mutants are detected, a sample of {len(every)}")
    return survivors, len(chosen) - len(survivors), len(every)


def read_table(table: Path) -> tuple[dict[str, str], list[str]]:
    """Return the rows of an earlier run by guard, and its lines about generic mutants."""
    lines = table.read_text().splitlines() if table.exists() else []
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}
    score = next((n for n, line in enumerate(lines) if line.startswith(SCORE)), len(lines) + 1)
    return rows, lines[score - 1 :]


def write_table(table: Path, ran: dict[str, str], score: list[str] | None) -> None:
    """Write the table with these rows, and keep the other rows and the score of an earlier run."""
    earlier_rows, earlier_score = read_table(table)
    rows = [row for mutant in MUTANTS if (row := (earlier_rows | ran).get(mutant.guard))]
    tested = sum(NONE not in row for row in rows)
    with_histories = [row for row in rows if not row.endswith(f"| {NOT_RUN} |")]
    found_count = sum(row.endswith(f"| {FOUND[True]} |") for row in with_histories)
    lines = [HEADING, "| guard | the test that fails without it | random histories |", "|---|---|---|", *rows, ""]
    lines.append(f"{tested} of {len(MUTANTS)} guards have a test that fails without them.")
    if with_histories:
        lines.append(f"The random histories ran for {len(with_histories)} of them and detect {found_count}.")
    table.write_text("\n".join([*lines, *(earlier_score if score is None else score)]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="write the table of guards and tests to this file, after each guard")
    parser.add_argument(
        "--histories", action="store_true", help="run only the random histories, and keep the tests of the table"
    )
    parser.add_argument("--generic", type=int, default=0, metavar="N", help="also run N generic mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("only", nargs="*", help="words in the names of the guards to run")
    options = parser.parse_args()
    if options.histories and not options.table:
        parser.error("--histories needs the --table of an earlier run")
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    ran: dict[str, str] = {}
    earlier_rows = read_table(options.table)[0] if options.histories else {}
    for guard, row in run_guards(options.only, earlier_rows):
        ran[guard] = row
        if options.table:
            write_table(options.table, ran, None)
    tested = sum(NONE not in row for row in ran.values())
    print(f"{tested} of {len(ran)} guards have a test")
    if options.generic:
        survivors, killed, every = run_sample(options.generic, options.seed)
        total = killed + len(survivors)
        summary = f"{SCORE} {total} generic mutants (inverted conditions, omitted statements), {killed} are detected."
        sample = f"They are a sample of {every}, seed {options.seed}.{' The others:' if survivors else ''}"
        score = ["", summary, sample]
        score += ["", *(f"- `{survivor}`" for survivor in survivors)] if survivors else []
        if options.table:
            write_table(options.table, ran, score)
    sys.exit(tested < len(ran))


if __name__ == "__main__":
    main()
