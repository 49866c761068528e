"""Every measurement, one after another, and the page made of them: `python bench/run.py [--quick] [--only FILE]`."""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# A file, how it is run whole, and how quickly (None: not then).
RUNS = [
    ("cache.py", ["--objects", "50000", "--rounds", "2", "--save"], ["--objects", "500", "--events", "2000"]),
    ("cache.py", ["--latency", "--save"], None),
    ("work.py", ["--save"], ["--pages", "10"]),
    ("servers.py", ["--save"], ["--objects", "500"]),
    ("suite.py", ["--save"], None),
    ("runtime.py", [], ["--objects", "200"]),
    ("server.py", [], []),
    ("wrk.py", [], []),
    ("many.py", [], None),
    ("contention.py", [], []),
    ("httpproxy.py", [], ["1"]),
    ("orphans.py", [], None),
    ("client.py", [], []),
    ("state.py", [], None),
    ("workqueue.py", [], []),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller numbers, nothing kept")
    parser.add_argument("--only", choices=sorted({name for name, *_ in RUNS}), help="one of them")
    options = parser.parse_args()
    failed = []
    for name, whole, quickly in RUNS:
        arguments = quickly if options.quick else whole
        if arguments is None or options.only not in (None, name):
            continue
        print(f"== bench/{name} {' '.join(arguments)}", flush=True)
        if subprocess.run([sys.executable, HERE / name, *arguments], check=False).returncode:
            failed.append(name)
    if not options.quick:
        subprocess.run([sys.executable, HERE / "report.py"], check=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
