"""Tests of a Go controller that uses controller-runtime, with its default content types, on the embedded server."""

import os
import shutil
from pathlib import Path

import pytest
from gooracle import binary

HERE = Path(__file__).parent / "go"


@pytest.fixture(scope="module")
def program():
    path = binary(HERE)
    if isinstance(path, str):
        if "FAIRLEAD_REQUIRE_CLIENTS" in os.environ and shutil.which("go"):
            pytest.fail(path)
        pytest.skip(path)
    return path


@pytest.mark.slow
async def test_go_controller_handles_the_life_of_an_object(served, program):
    assert (await served.run(program)).splitlines()[-1] == "done"
    assert served.server.metrics.total(verb="POST", resource="leases", code="201") == 1  # leader election uses protobuf
