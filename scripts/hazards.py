"""Run the hazard matrix and print it as a table: `python scripts/hazards.py [--table docs/design/hazards.md]`.

A row is a way in which writes go wrong, with the tests that show it on each server.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

MARKS = {"passed": "yes", "failed": "FAILED", "skipped": "left out"}
HEADING = """# Hazards: the ways writes go wrong

Each row is a way in which a write to a Kubernetes server goes wrong, with tests that show what the naive write does and
what ours does instead; where a row does not concern a client, its test holds the server's answer. The sentences are the
names of the tests (`tests/hazards`), so each can be looked up. Made by `make hazards`, which runs them all.

| row | hazard | embedded | real |
|---|---|---|---|
"""
REMARKS = """
Left out, because they are about a definition whose versions change under stored objects. The embedded server is not
exact there ([differences](../differences.md)), and there is nothing that ours does instead:

- h37, an entry of a version that is no longer served. A real server answers an apply with a 500 that says so; ours
  raises it.
- h38, a new version with defaults beside entries of the old one.
- h39, a conversion webhook that is down while an object has entries of two versions: a server then drops all of them
  at a plain write, and answers an apply with an error, which ours raises. The embedded server calls no webhooks.
"""


class Table:
    """Gathers what became of each test: row -> sentence -> server -> outcome."""

    def __init__(self) -> None:
        self.rows = defaultdict(lambda: defaultdict(dict))

    def pytest_runtest_logreport(self, report):
        found = re.search(r"::test_(h\d+b?)_(\w+)(?:\[(\w+))?", report.nodeid)
        if found and (report.when == "call" or report.outcome != "passed"):
            row, name, server = found.groups()
            before = self.rows[row][name.replace("_", " ")]
            before[server] = "failed" if "failed" in (before.get(server), report.outcome) else report.outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="write the table there")
    options = parser.parse_args()
    table = Table()
    code = pytest.main(["-q", "--no-summary", "tests/hazards"], plugins=[table])
    lines = []
    for row, tests in sorted(table.rows.items()):
        for sentence, servers in tests.items():
            marks = [MARKS[servers.get(server, "skipped")] for server in ("embedded", "real")]
            print(f"{row:5} {sentence:100} {marks[0]:9} {marks[1]}")
            lines.append(f"| {row} | {sentence} | {marks[0]} | {marks[1]} |")
    print(f"{len(table.rows)} rows, {len(lines)} tests on each server")
    if (
        options.table
        and code == 0
        and all(len(servers) == 2 for row in table.rows.values() for servers in row.values())
    ):
        options.table.write_text(HEADING + "\n".join(lines) + "\n" + REMARKS)
    sys.exit(code)


if __name__ == "__main__":
    main()
