"""Tests that `make mutate` detects a mutant by a failing test, or by tests that do not end."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = """
from fairlead.queue import queue

def test_it():
    while getattr(queue, "hangs", False):
        pass
    assert not getattr(queue, "breaks", False)
"""
RUN = """
import sys
sys.path.insert(0, "scripts/mutation")
import run
text = (run.PACKAGE / "queue/queue.py").read_text()
measured = [float(seconds) for seconds in sys.argv[3:]]
if measured:
    run.MIN_TIMEOUT, run.measure_again = 0.0, lambda tests: measured.pop(0)
print("\\n" + str(run.find_failing_test("queue/queue.py", text + sys.argv[2], [sys.argv[1]], [])))
"""


@pytest.mark.parametrize(
    ("change", "measured", "expected"),
    [
        pytest.param("", [], "None", id="no change"),
        pytest.param("breaks = True", ["1000"], "test_it", id="failing test"),
        pytest.param("hangs = True", ["0.4", "0.4"], "timed out", id="endless test"),
        pytest.param("", ["0.0001", "1000"], "None", id="slow machine"),
    ],
)
def test_mutant_is_detected_by_a_failing_test_or_a_timeout(tmp_path, change, measured, expected):
    test = tmp_path / "test_it.py"
    test.write_text(TEST)
    command = [sys.executable, "-c", RUN, str(test), change, *measured]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1].rpartition("::")[2] == expected
