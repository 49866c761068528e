"""Run every benchmark and write the page: `python bench/run.py [--quick] [--only FILE]`.

If a benchmark fails or exceeds its time limit, the others still run. The program names it at the end.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
# A file, how it is run whole and how many minutes that takes on two idle cores, and how quickly (None: not then).
RUNS = [
    ("cache.py", ["--objects", "50000", "--rounds", "3", "--save"], 14, ["--quick"]),
    ("cache.py", ["--latency", "--save"], 2, None),
    ("work.py", ["--save"], 8, ["--pages", "5", "--server", "embedded", "--only", "fairlead", "--only", "kopf"]),
    ("servers.py", ["--save"], 2, ["--quick"]),
    ("suite.py", ["--save"], 3, None),
    ("many.py", ["--save"], 6, ["--objects", "500"]),
    ("contention.py", ["--save"], 2, ["--embedded"]),
    ("backoff.py", ["--save"], 2, ["--embedded", "--objects", "20"]),
    ("wrk.py", ["--save"], 2, ["--seconds", "1"]),
    ("server.py", ["--save"], 1, ["--quick"]),
    ("concurrency.py", ["--save"], 2, ["--objects", "10"]),
    ("runtime.py", [], 1, ["--objects", "200"]),
    ("orphans.py", ["--save"], 1, ["--routes", "100", "--clusters", "2"]),
    ("client.py", [], 1, ["--requests", "100"]),
    ("state.py", [], 1, None),
    ("workqueue.py", [], 1, []),
    ("lint.py", [], 2, ["--lines", "10000"]),
]
QUICKLY, LEAST = 360, 10  # seconds for all that is quick, and for each whatever the others took
PATIENCE = 4  # so many times what is expected, for a whole one


def run(name, arguments, seconds):
    """Run one benchmark. Return the error, or an empty text."""
    # a group of its own: servers that it started end with it, and it with us
    process = subprocess.Popen([sys.executable, HERE / name, *arguments], start_new_session=True)
    try:
        return f"ended with {process.returncode}" if process.wait(seconds) else ""
    except subprocess.TimeoutExpired:
        return f"stopped after {seconds} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def raise_keyboard_interrupt(*_):
    """Raise KeyboardInterrupt for a signal that ends the process, so that child processes are stopped."""
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, raise_keyboard_interrupt)
    try:
        measure()
    except KeyboardInterrupt:
        sys.exit(
            "interrupted: what was measured whole is in bench/results, `python bench/report.py` makes the page of it"
        )


def measure():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller numbers, nothing kept")
    parser.add_argument("--only", choices=sorted({name for name, *_ in RUNS}), help="one of them")
    options = parser.parse_args()
    chosen = [
        benchmark
        for benchmark in RUNS
        if options.only in (None, benchmark[0]) and not (options.quick and benchmark[3] is None)
    ]
    total_minutes = sum(minutes for _, _, minutes, _ in chosen)
    print(
        f"at most {QUICKLY} s in all" if options.quick else f"about {total_minutes} minutes in all, on two idle cores",
        flush=True,
    )
    failed_programs, end = [], time.monotonic() + QUICKLY
    for number, (name, arguments, minutes, quickly) in enumerate(chosen, 1):
        expected, seconds = f"about {minutes} min", minutes * 60 * PATIENCE
        if options.quick:
            seconds_left = end - time.monotonic() - LEAST * (len(chosen) - number)
            arguments, seconds = quickly, max(LEAST, min(QUICKLY // 4, round(seconds_left)))
            expected = f"at most {seconds} s"
        print(f"\n== {number} of {len(chosen)}: bench/{name} {' '.join(arguments)} ({expected})", flush=True)
        started = time.monotonic()
        error = run(name, arguments, seconds)
        print(f"== {error or 'done'} ({time.monotonic() - started:.0f} s)", flush=True)
        if error:
            failed_programs.append(f"{name} {error}")
    if not options.quick and subprocess.run([sys.executable, HERE / "report.py"], check=False).returncode:
        failed_programs.append("report.py left sections as they were")
    if failed_programs:
        sys.exit(f"not all were measured: {'; '.join(failed_programs)}")


if __name__ == "__main__":
    main()
