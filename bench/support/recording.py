"""Save the figures of a benchmark in bench/results/SECTION.json. bench/report.py writes the page from them."""

import datetime
import json
import os
import platform
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"
LOAD = round(os.getloadavg()[0], 1)  # Of the minute before the measurement.
_begun = set()


def describe_machine():
    """Return a description of the machine, so that readers can compare results."""
    cpu = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores ({cpu[0] if cpu else platform.machine()}), {memory:.0f} GB",
        "python": platform.python_version(),
        "load before": LOAD,
        "load": round(os.getloadavg()[0], 1),
    }


def load(section):
    path = RESULTS / f"{section}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(section, figures, *, is_partial=False):
    """Save the figures of this run. They replace all earlier ones, or with `is_partial` only the same ones."""
    RESULTS.mkdir(exist_ok=True)
    old = load(section) if is_partial or section in _begun else {}
    _begun.add(section)
    run = {"part": describe_machine()} if is_partial and old else describe_machine()
    write(RESULTS / f"{section}.json", json.dumps(merge(old, {"run": run, **figures}), indent=1, ensure_ascii=False))


def merge(old, new):
    if isinstance(new, dict):
        old = old if isinstance(old, dict) else {}
        return old | {key: merge(old.get(key), value) for key, value in new.items()}
    return round(new, 3) if isinstance(new, float) else new


def write(path, content):
    """Write the file atomically."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(content.rstrip("\n") + "\n")
    new.replace(path)
