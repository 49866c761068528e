"""Measure how long the same tests take on the embedded server and on a real one: `python bench/suite.py`."""

import argparse
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from fairlead.testing.real import missing
from support import recording

PART = ("tests/hazards", "tests/writes")


def run(name):
    """Run the tests that exist for both servers. Return the wall-clock and CPU seconds, including the server's."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", *PART, "-k", f"[{name}"]
    output = subprocess.run(
        command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts = {outcome: int(count) for count, outcome in re.findall(r"(\d+) (passed|failed|error)", output[-400:])}
    if "passed" not in counts:
        sys.exit(f"no test ran:\n{output[-3000:]}")
    if failed_count := sum(counts.values()) - counts["passed"]:
        print(output[-3000:])
    return {
        "wall s": time.perf_counter() - started,
        "CPU s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "passed": counts["passed"],
        "failed": failed_count,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/benchmarks.md")
    options = parser.parse_args()
    rows = {"embedded": run("embedded")}
    print(rows, flush=True)
    if reason := missing():
        print(f"the real server is left out: {reason}")
    else:
        rows["real"] = run("real")
        print(rows, flush=True)
    if options.save:
        recording.save("suite", {"part": f"pytest {' '.join(PART)}", "rows": rows})


if __name__ == "__main__":
    main()
