"""Every measurement, one after another, and the page made of them: `python bench/run.py [--quick] [--only FILE]`."""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# A file, with how it is run: whole, and quickly.
RUNS = {
    "cache.py": (["--objects", "50000", "--save"], ["--objects", "5000", "--events", "10000"]),
    "work.py": (["--save"], ["--pages", "10"]),
    "runtime.py": ([], ["--objects", "200"]),
    "server.py": ([], []),
    "wrk.py": ([], []),
    "many.py": ([], []),
    "contention.py": ([], []),
    "orphans.py": ([], []),
    "client.py": ([], []),
    "state.py": ([], []),
    "workqueue.py": ([], []),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller numbers, nothing kept")
    parser.add_argument("--only", choices=RUNS, help="one of them")
    options = parser.parse_args()
    failed = []
    for name in [options.only] if options.only else RUNS:
        print(f"== bench/{name}", flush=True)
        command = [sys.executable, HERE / name, *RUNS[name][options.quick]]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    if not options.quick:
        subprocess.run([sys.executable, HERE / "report.py"], check=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
