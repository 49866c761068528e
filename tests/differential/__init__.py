"""Differential tests: random histories of requests on a real server and on the embedded one."""

import sys
from pathlib import Path

# `python -m tests.differential.run` needs the folder that pytest adds to the path.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
