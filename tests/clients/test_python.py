"""Tests of third-party Python clients on the embedded server. Each program in programs/ must succeed."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv" / "clients" / "bin" / "python"
REASON = "the clients are not installed: make clients-test"

pytestmark = pytest.mark.skipif(not PYTHON.exists() and "FAIRLEAD_REQUIRE_CLIENTS" not in os.environ, reason=REASON)


@pytest.mark.parametrize("program", sorted(path.stem for path in (HERE / "programs").glob("use_*.py")))
async def test_client_program_runs_to_its_end(served, program):
    out = await served.run(PYTHON, HERE / "programs" / f"{program}.py")
    assert out.splitlines()[-1] == "done"
