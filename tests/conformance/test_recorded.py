"""What a real kube-apiserver answered, the embedded server answers: one case a recorded scenario.

`differs.txt` names the scenarios that do not pass yet, by family. A case there must fail, so that a pass is noticed and
its line goes; everything else must pass, so that no pass is ever lost.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import replay
import traces

DIFFERS = {line for line in (Path(__file__).parent / "differs.txt").read_text().splitlines() if "/" in line}
SCENARIOS = traces.load()


def test_every_name_in_differs_is_a_scenario():
    assert not DIFFERS - {scenario["name"] for scenario in SCENARIOS}


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(s, id=s["name"], marks=[pytest.mark.xfail(reason="differs.txt")] if s["name"] in DIFFERS else [])
        for s in SCENARIOS
    ],
)
def test_answers_as_recorded(scenario):
    bad = list(traces.mismatches(scenario, replay.play(scenario)))
    assert not bad, "\n".join(traces.told(one) for one in bad[:6])
