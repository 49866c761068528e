"""Tests of the wheels: only the operators' wheel has operators and CRDs, and neither wheel has tests."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def wheel_files(project, folder):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT / project)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize("project", [".", "operators"])
def test_wheel_contains_no_tests(project, tmp_path):
    files = wheel_files(project, tmp_path)
    assert not [name for name in files if "/tests/" in name or "test_" in name or "conftest" in name]


def test_framework_wheel_contains_no_legacy_module_and_no_operator(tmp_path):
    files = wheel_files(".", tmp_path)
    assert "fairlead/runtime/operator.py" in files
    assert {"fairlead/report/live/assets/page.css", "fairlead/report/live/assets/page.js"} <= set(files)
    assert not [name for name in files if "legacy" in name or "fairlead_operators" in name]


def test_operators_wheel_contains_the_systems_and_their_crds(tmp_path):
    files = wheel_files("operators", tmp_path)
    assert "fairlead_operators/httpproxy/controller.py" in files
    assert "fairlead_operators/httpproxy/crds/httproutes.gateway.networking.k8s.io.json" in files
