"""Where a benchmark leaves its figures: bench/results/SECTION.json, from which bench/report.py makes the page."""

import datetime
import json
import os
import platform
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


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
        "load": round(os.getloadavg()[0], 1),
    }


def load(section):
    path = RESULTS / f"{section}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(section, found):
    """Replace what was found by this run and keep the rest, so that a part can be measured anew alone."""
    RESULTS.mkdir(exist_ok=True)
    kept = merged(load(section), {"run": machine(), **found})
    (RESULTS / f"{section}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def merged(old, new):
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: merged(old.get(key), value) for key, value in new.items()}
    return round(new, 3) if isinstance(new, float) else new
