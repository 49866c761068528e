"""The same answers from a directory, and from a server that was closed and opened again before each request.

Every fifteenth scenario here; all of them with `make conformance ARGS=--restart`.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import replay
import traces

DIFFERS = (Path(__file__).parent / "differs.txt").read_text().splitlines()
SCENARIOS = [scenario for scenario in traces.load() if scenario["name"] not in DIFFERS][::15]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_a_restart_between_any_two_requests_changes_no_answer(scenario):
    bad = list(traces.mismatches(scenario, replay.play(scenario, data=True, restart=True)))
    assert not bad, "\n".join(traces.told(one) for one in bad[:6])
