"""Random histories of writers on built-in kinds, on a real server and on the embedded one, answer by answer."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import histories
import replay
import traces

SECONDS = float(os.environ.get("FAIRLEAD_ORACLE_SECONDS", "8"))
FIRST = int(os.environ.get("FAIRLEAD_ORACLE_SEED", "0"))


@pytest.mark.only("real", reason="the embedded server plays each history beside it")
async def test_random_histories_are_answered_as_by_a_real_server(api):
    until = time.monotonic() + SECONDS
    seed = FIRST
    while time.monotonic() < until:
        scenario = histories.scenario(seed)
        real = await traces.run(api.transport(), scenario, f"x{seed:06x}")
        ours = await asyncio.to_thread(replay.play, scenario)
        for index, (step, want, got) in enumerate(zip(scenario["steps"], real, ours, strict=True)):
            bad = traces.differences(without_warnings(want), without_warnings(got))
            assert not bad, f"{scenario['name']}, step {index} {step}: {bad[:3]}"
        seed += 1
    assert seed > FIRST


def without_warnings(answer):
    return {key: value for key, value in answer.items() if key != "warnings"}
