"""Tests that the embedded server responds to recorded requests like a real server. Each scenario is one test.

A scenario in `known_failures.txt` must fail, so that its line is removed when it passes. All others must pass.
"""

import json
import sys
from pathlib import Path

import pytest
from recordings import find_mismatches, format_mismatch, read_scenarios, write_scenarios

sys.path.insert(0, str(Path(__file__).parent))
import replay

KNOWN_FAILURES = replay.read_known_failures()
SCENARIOS = replay.load_scenarios()


def test_known_failures_are_names_of_scenarios():
    assert not KNOWN_FAILURES - {scenario["name"] for scenario in SCENARIOS}


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(
            scenario,
            id=scenario["name"],
            marks=[pytest.mark.xfail(reason="known failure")] if scenario["name"] in KNOWN_FAILURES else [],
        )
        for scenario in SCENARIOS
    ],
)
def test_responses_equal_the_recorded_ones(scenario):
    mismatches = list(find_mismatches(scenario, replay.play_embedded(scenario)))
    assert not mismatches, "\n".join(map(format_mismatch, mismatches[:6]))


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_recordings_can_be_written_and_read_in_both_formats(tmp_path, suffix):
    step = {"do": "GET", "path": "/version", "expect": {"code": 200, "body": {"a": "ä\u2028\ud800"}}}
    scenarios = [{"name": "a", "why": "b", "steps": [step, step]}, {"name": "c", "cleanup": ["/d"], "steps": []}]
    path = tmp_path / f"r.{suffix}"
    write_scenarios(path, scenarios)
    assert read_scenarios(path) == scenarios


def test_recordings_in_the_array_format_are_replayed(tmp_path):
    scenario = {key: value for key, value in SCENARIOS[0].items() if key != "file"}
    path = tmp_path / "recording.json"
    path.write_text(json.dumps([scenario]))
    [loaded] = replay.load_scenarios([str(path)])
    assert not list(find_mismatches(loaded, replay.play_embedded(loaded)))
