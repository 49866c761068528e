"""Where a benchmark leaves its figures: bench/results/SECTION.json, from which bench/report.py makes the page."""

import datetime
import json
import os
import platform
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
LOAD = round(os.getloadavg()[0], 1)  # of the minute before: nothing was measured yet
_begun = set()


def machine():
    """What the figures were measured on, as far as a reader needs it to compare."""
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


def save(section, found, *, part=False):
    """Add to what this run found. A run replaces what earlier ones left, unless it measures a `part` of it anew."""
    RESULTS.mkdir(exist_ok=True)
    old = load(section) if part or section in _begun else {}
    _begun.add(section)
    run = {"part": machine()} if part and old else machine()
    write(RESULTS / f"{section}.json", json.dumps(merged(old, {"run": run, **found}), indent=1, ensure_ascii=False))


def merged(old, new):
    if isinstance(new, dict):
        old = old if isinstance(old, dict) else {}
        return old | {key: merged(old.get(key), value) for key, value in new.items()}
    return round(new, 3) if isinstance(new, float) else new


def write(path, text):
    """All of it or nothing, whatever ends the process meanwhile."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text.rstrip("\n") + "\n")
    new.replace(path)
