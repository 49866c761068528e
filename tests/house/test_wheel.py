"""What is published: the wheel carries the operators and their CRDs, and none of the tests."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_carries_the_operators_and_no_tests(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "fairlead/operators/httpproxy/operator.py" in names
    assert "fairlead/operators/httpproxy/crds/httproutes.gateway.networking.k8s.io.json" in names
    assert not [name for name in names if "/tests/" in name]
