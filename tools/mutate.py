"""Remove each guard of the write disciplines singly and see a test fail: `python tools/mutate.py [--table FILE]`.

Each mutant is a copy of the package with one piece of text replaced. It runs the tests of writes/ on the embedded
server until the first fails. A guard whose mutant survives is not held by any test: the run then fails. The table of
docs/design/guards.md is what `--table` writes.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TESTS = [
    "tests/writes",
    "tests/hazards",
    "-k",
    "not real and not contention and not histories and not commands",
]


HEADING = """# Guards

Each guard of the write disciplines, and the first test that failed when that guard alone was taken out of the code.
Made by `make mutate`, on the embedded server.
"""


class Mutant(NamedTuple):
    guard: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant("decide: uid", "guards.py", "return [uid, *guards", "return [*guards"),
    Mutant("decide: a value that was read", "guards.py", "if noted is Noted.VALUE:", "if False:"),
    Mutant("decide: an absence that was read", "guards.py", "elif noted is Noted.ABSENT:", "elif False:"),
    Mutant(
        "decide: a value that is replaced",
        "guards.py",
        'guards.value(path)\n            changes.append({"op": "replace"',
        'changes.append({"op": "replace"',
    ),
    Mutant(
        "decide: a value that is removed",
        "guards.py",
        'guards.value(path)\n            changes.append({"op": "remove"',
        'changes.append({"op": "remove"',
    ),
    Mutant("decide: an absence that is filled", "guards.py", "guards.absent(first)\n", "pass\n"),
    Mutant("decide: the first missing ancestor", "guards.py", "for end in range(1, len(path)):", "for end in ():"),
    Mutant("decide: the list around an absence", "guards.py", "if inside:", "if False:"),
    Mutant("decide: that a map is there", "guards.py", "if noted is Noted.PRESENT}", "if False}"),
    Mutant("decide: that a map is not empty", "guards.py", "if noted is Noted.FILLED}", "if False}"),
    Mutant(
        "decide: reaching the end of a list",
        "view.py",
        "if not 0 <= index < len(value):\n            self._ledger.note(self._path, Noted.VALUE)",
        "if not 0 <= index < len(value):",
    ),
    Mutant(
        "decide: what the function hands out",
        "purity.py",
        "return _handed_out(result), ledger",
        "return result, ledger",
    ),
    Mutant(
        "decide: a live read after a failed test", "decide.py", "base, live = found, True", "base, live = base, True"
    ),
    Mutant("decide: a test that fails although it holds", "decide.py", "if live and found", "if False and found"),
    Mutant("decide: a schema error is no conflict", "decide.py", "return not error.causes", "return True"),
    Mutant("decide: named fields only", "decide.py", "if allowed is None:", "if True:"),
    Mutant("decide: status at its own endpoint", "decide.py", 'return "status"', "return None"),
    Mutant(
        "decide: purity, same changes", "purity.py", "if not same(_once(function, base, name)[2], patch):", "if False:"
    ),
    Mutant("decide: purity, captured state", "purity.py", "if changed:", "if False:"),
    Mutant("turns: one write after another", "writer.py", "async with lock:\n                yield", "yield"),
    Mutant("a live read tells another uid apart", "writer.py", "if live.uid != obj.uid:", "if False:"),
    Mutant("the view is told of the last write", "writer.py", "if over(obj):", "if False:"),
    Mutant(
        "a stale view is not asked about another uid", "writer.py", "and cached.uid == obj.uid else obj", "else obj"
    ),
    Mutant("apply: create-or-refuse", "apply.py", "self.send(resourceVersion=_NEVER)", "self.send()"),
    Mutant("apply: uid", "apply.py", "self.send(uid=uid)", "self.send()"),
    Mutant(
        "apply: an object that is not ours",
        "apply.py",
        "raise Foreign(self.what, holder_of(live))\n            return",
        "pass\n            return",
    ),
    Mutant(
        "apply: adopt never takes from a controller",
        "apply.py",
        "(self.adopt and controller_of(obj) is None)",
        "self.adopt",
    ),
    Mutant("apply: a lost answer is looked up", "apply.py", "except (Conflict, Unknown):", "except Conflict:"),
    Mutant("apply: payload from scratch", "payload.py", "if metadata.get(field) is not None:", "if False:"),
    Mutant("apply: no views in a payload", "payload.py", "if isinstance(value, MapView | ListView):", "if False:"),
    Mutant("apply: nulls are left out", "payload.py", "if item is not None}", "}"),
    Mutant("apply: stringData becomes data", "payload.py", '"stringData" in body:', '"stringData" in ():'),
    Mutant("apply: only an immutable field is Immutable", "apply.py", "if fixed and not any(", "if False and not any("),
    Mutant("elision: our entry", "elision.py", "if entry is None or", "if False or"),
    Mutant(
        "elision: order of keyed items",
        "elision.py",
        "for item in value:\n        if any",
        "for item in sorted(value, key=str):\n        if any",
    ),
    Mutant("elision: fields left out", "elision.py", "payload.keys() | mine.keys()", "payload.keys()"),
    Mutant("elision: fields added", "elision.py", "payload.keys() | mine.keys()", "mine.keys()"),
    Mutant("elision: what a payload became", "apply.py", "if not became and not unchanged(", "if not unchanged("),
    Mutant(
        "elision: the same version again", "apply.py", "if not became and not unchanged(", "if became or not unchanged("
    ),
    Mutant("delete: uid", "delete.py", "uid=obj.uid,", ""),
    Mutant("delete: resourceVersion", "delete.py", "obj.resource_version if unchanged else None", "None"),
    Mutant("prune: owner", "prune.py", "return owned and writer.applied", "return writer.applied"),
    Mutant(
        "prune: our Apply entry",
        "prune.py",
        "return owned and writer.applied(child)",
        "return owned",
    ),
    Mutant("prune: resourceVersion", "prune.py", "unchanged=True", "unchanged=False"),
    Mutant("prune: what is wanted", "prune.py", "if wanted or", "if"),
    Mutant("finalizer: not while deleting", "finalizers.py", "if draft.deleting:", "if False:"),
    Mutant(
        "finalizer: only our own entry", "finalizers.py", "[other for other in finalizers if other != finalizer]", "[]"
    ),
    Mutant("status: never a generation back", "status.py", "if theirs > report.generation:", "if False:"),
    Mutant("status: time only on a transition", "status.py", 'if found.get("status") != said["status"]:', "if True:"),
    Mutant("status: the same report again", "status.py", "if memo and (memo.uid", "if False and (memo.uid"),
    Mutant(
        "migrate: resourceVersion",
        "migrate.py",
        '{"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version},',
        "",
    ),
    Mutant("migrate: declared fields", "migrate.py", "union(selected(", "owned or union(selected("),
    Mutant("migrate: named managers", "migrate.py", ' and entry.get("manager") in managers', ""),
    Mutant("default: only what is missing", "view.py", "if self.unnoted(key) is None:", "if True:"),
]


def killed_by(mutant: Mutant) -> str | None:
    """The test that fails without the guard, or None."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "fairlead"
        shutil.copytree(ROOT / "src" / "fairlead", package, ignore=shutil.ignore_patterns("__pycache__"))
        path = package / "writes" / mutant.file
        text = path.read_text()
        if text.count(mutant.old) != 1:
            sys.exit(
                f"{mutant.guard}: {mutant.file} has {mutant.old!r} {text.count(mutant.old)} times: correct this list"
            )
        path.write_text(text.replace(mutant.old, mutant.new))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", *TESTS]
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[| |$)", run.stdout, re.MULTILINE)
    return found.group(1) if found else f"exit code {run.returncode}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="write the table of guards and tests there")
    parser.add_argument("only", nargs="*", help="words of the guards to run")
    options = parser.parse_args()
    lines, survivors = [HEADING, "| guard | the test that fails without it |", "|---|---|"], []
    mutants = [m for m in MUTANTS if not options.only or any(word in m.guard for word in options.only)]
    for mutant in mutants:
        test = killed_by(mutant)
        print(f"{'held' if test else 'NOT HELD':8}  {mutant.guard:45}  {test or ''}", flush=True)
        lines.append(f"| {mutant.guard} | `{(test or 'none').rpartition('::')[2]}` |")
        if not test:
            survivors.append(mutant.guard)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} guards are held by a test")
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
