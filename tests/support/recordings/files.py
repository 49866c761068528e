"""Read and write recordings."""

import json
from pathlib import Path
from typing import Any

Scenario = dict[str, Any]


def read_scenarios(path: Path) -> list[Scenario]:
    """Return the scenarios of a `.jsonl` or `.json` file."""
    json_lines = path.read_text()
    if path.suffix != ".jsonl":
        content = json.loads(json_lines)
        return content if isinstance(content, list) else [content]
    scenarios: list[Scenario] = []
    for line in filter(None, json_lines.split("\n")):
        record = json.loads(line)
        if "do" in record:
            scenarios[-1]["steps"].append(record)
        else:
            scenarios.append({**record, "steps": []})
    return scenarios


def write_scenarios(path: Path, scenarios: list[Scenario]) -> None:
    """Write scenarios to a `.jsonl` file, or as an array to a `.json` file."""
    if path.suffix != ".jsonl":
        path.write_text(json.dumps(scenarios, indent=1) + "\n")
        return
    records: list[dict[str, Any]] = []
    for scenario in scenarios:
        records.append({key: value for key, value in scenario.items() if key != "steps"})
        records += scenario["steps"]
    path.write_text("".join(f"{_encode(record)}\n" for record in records))


def _encode(record: dict[str, Any]) -> str:
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    try:
        line.encode()
    except UnicodeEncodeError:  # It contains half of a surrogate pair.
        return json.dumps(record, separators=(",", ":"))
    return line
