"""Tests that a server that is restarted before each request responds like one that is not.

This tests every fifteenth scenario. `make conformance ARGS=--restart` tests all of them.
"""

import sys
from pathlib import Path

import pytest
from recordings import find_mismatches, format_mismatch

sys.path.insert(0, str(Path(__file__).parent))
import replay

KNOWN_FAILURES = replay.read_known_failures()
SCENARIOS = [scenario for scenario in replay.load_scenarios() if scenario["name"] not in KNOWN_FAILURES][::15]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_restart_before_each_request_changes_no_response(scenario):
    mismatches = list(find_mismatches(scenario, replay.play_embedded(scenario, is_durable=True, restarts=True)))
    assert not mismatches, "\n".join(map(format_mismatch, mismatches[:6]))
