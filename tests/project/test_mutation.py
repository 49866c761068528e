"""What `make mutate` makes of the tests of one mutant."""

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
ASK = """
import sys
sys.path.insert(0, "scripts/mutation")
import run
text = (run.PACKAGE / "queue/queue.py").read_text()
measured = [float(each) for each in sys.argv[3:]]
if measured:
    run.LEAST, run._unmutated = 0.0, lambda tests: measured.pop(0)
print("\\n" + str(run.killed_by("queue/queue.py", text + sys.argv[2], [sys.argv[1]], [])))
"""


@pytest.mark.parametrize(
    ("change", "measured", "found"),
    [
        pytest.param("", [], "None", id="nothing is changed"),
        pytest.param("breaks = True", ["1000"], "test_it", id="it fails"),
        pytest.param("hangs = True", ["0.4", "0.4"], "timed out", id="it does not end"),
        pytest.param("", ["0.0001", "1000"], "None", id="the machine became slow"),
    ],
)
def test_a_mutant_is_found_out_by_a_test_that_fails_and_by_tests_that_do_not_end(tmp_path, change, measured, found):
    test = tmp_path / "test_it.py"
    test.write_text(TEST)
    asked = [sys.executable, "-c", ASK, str(test), change, *measured]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1].rpartition("::")[2] == found
