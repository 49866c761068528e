"""Take each guard of the writes and of the queue out singly and see a test fail: `python tools/mutation/run.py`.

Each mutant is one module with one piece of text changed, in a process of its own that runs the tests of that room on
the embedded server until the first fails. A guard whose mutant survives is not held by any test: the run then fails.
Beside the guards by name, a sample of mutants of no particular guard (conditions turned round, effects left out) gives
a score. `--table FILE` writes docs/design/guards.md; words choose guards: `run.py finalizer queue`; the other rows
of the table stay as an earlier run left them.
"""

import argparse
import contextlib
import importlib.abc
import importlib.util
import os
import random
import re
import signal
import sys
import tempfile
import time
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
    "apply": "test_apply.py", "payload": "test_apply.py", "elision": "test_elision.py", "decide": "test_decide.py",
    "guards": "test_decide.py", "purity": "test_decide.py", "jsonpatch": "test_decide.py", "view": "test_view.py",
    "finalizers": "test_finalizers.py", "status": "test_status.py", "migrate": "test_migrate.py",
    "delete": "test_small.py", "prune": "test_small.py", "shared": "test_small.py", "defaults": "test_small.py",
    "draft": "test_view.py", "writer": "test_odd.py",
}  # fmt: skip
LONGEST = 240.0  # seconds; the tests of one room take a tenth of that

NONE = "**none**"
SCORE = "Of"  # how the line of generic mutants begins
HEADING = """# Guards

Each guard of the write disciplines and of the queue, and the first test that failed when that guard alone was taken out
of the code. Made by `make mutate`, on the embedded server.

These tests aim at their guard. The random histories (`tests/writes/test_histories.py`) are asked beside them only with
`--histories`; some guards they can never miss, as nothing in them goes that way, and the tests here alone hold those:
purity, named fields, what may be in a payload, making anew, odd input, what is the server's, and answers lost twice.
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


def killed_by(file: str, text: str, tests: list[str]) -> str | None:
    """The first test that fails with that text of the file, or None."""
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
        code = _wait(child)
        output.seek(0)
        said = output.read().decode(errors="replace")
    if code == 0:
        return None
    if code is None:
        return None  # no test failed: one that hangs tells its reader nothing
    found = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[| |$)", said, re.MULTILINE)
    if not found:
        sys.exit(f"the tests did not run: {said}")
    return found.group(1)


def _tested(file: str, text: str, tests: list[str], output: int) -> int:
    os.setsid()
    for fd in (1, 2):
        os.dup2(output, fd)
    hypothesis.settings.register_profile(
        "once", phases=list(hypothesis.Phase)[:3], database=None
    )  # none smaller is sought
    hypothesis.settings.load_profile("once")
    overlay = _Overlay(file, text)
    sys.meta_path.insert(0, overlay)
    try:
        importlib.import_module(overlay.name)  # before pytest puts a finder of its own in front
    except Exception as error:
        print(f"FAILED import: {error}")
        return 1
    loaded = ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    return pytest.main(["-q", "-x", "-m", "not real", *loaded, *tests])


def _wait(child: int) -> int | None:
    """Its exit code; None if it had to be ended."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def tests_of(file: str) -> list[str]:
    room, _, module = file.removesuffix(".py").partition("/")
    first = [f"tests/writes/{FIRST[module]}"] if room == "writes" and module in FIRST else []
    return first + TESTS[room]


def named(words: list[str], histories: bool) -> tuple[dict[str, str], int, int]:
    """Rows of the table by guard, and how many of how many guards are held."""
    rows, held = {}, 0
    mutants = [m for m in MUTANTS if not words or any(word in m.guard for word in words)]
    for mutant in mutants:
        text = (PACKAGE / mutant.file).read_text()
        if text.count(mutant.old) != 1:
            sys.exit(
                f"{mutant.guard}: {mutant.file} has {mutant.old!r} {text.count(mutant.old)} times: correct guards.py"
            )
        text = text.replace(mutant.old, mutant.new)
        test = killed_by(mutant.file, text, tests_of(mutant.file))
        seen = histories and mutant.file.startswith("writes/") and killed_by(mutant.file, text, HISTORIES)
        print(f"{'held' if test else 'NOT HELD':8}  {mutant.guard:60}  {test or ''}{'  *' if seen else ''}", flush=True)
        noticed = f" {'yes' if seen else ''} |" if histories else ""
        found = f"`{test.rpartition('::')[2]}`" if test else NONE
        rows[mutant.guard] = f"| {mutant.guard} | {found} |{noticed}"
        held += bool(test)
    print(
        f"{held} of {len(mutants)} guards are held by a test{' (* by the random histories too)' if histories else ''}"
    )
    return rows, held, len(mutants)


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
        test = killed_by(file, change.text, tests_of(file))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="write the table of guards and tests there")
    parser.add_argument("--histories", action="store_true", help="ask the random histories too")
    parser.add_argument("--generic", type=int, default=0, metavar="N", help="and N mutants of no particular guard")
    parser.add_argument("--seed", type=int, default=0, help="of their sample")
    parser.add_argument("only", nargs="*", help="words of the guards to run")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    ran, held, guards = named(options.only, options.histories)
    columns = ["guard", "the test that fails without it", *(["random histories"] if options.histories else [])]
    kept, score = earlier(options.table) if options.table else ({}, [])
    rows = {mutant.guard: (kept | ran).get(mutant.guard) for mutant in MUTANTS}
    lines = [HEADING, f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *filter(None, rows.values()), ""]
    shown = sum(row is not None and NONE not in row for row in rows.values())
    lines.append(f"{shown} of {len(rows)} guards are held.")
    if options.generic:
        survivors, killed, every = sampled(options.generic, options.seed)
        said = (
            f"(conditions turned round, effects left out; a sample of {every}, seed {options.seed}) {killed} are killed"
        )
        total = killed + len(survivors)
        score = ["", f"{SCORE} {total} mutants of no particular guard", f"{said}. The others:", ""]
        score += [f"- `{survivor}`" for survivor in survivors]
    if options.table:
        options.table.write_text("\n".join([*lines, *score]) + "\n")
    sys.exit(held < guards)


if __name__ == "__main__":
    main()
