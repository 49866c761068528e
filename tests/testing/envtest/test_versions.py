"""Warnings for suites that want another Kubernetes version."""

import os
import subprocess
import sys

import pytest

from fairlead.server import discovery
from fairlead.testing import real
from fairlead.testing.envtest import versions


def test_version_is_that_of_the_embedded_and_of_the_real_server():
    assert f"v{versions.VERSION}" == discovery.VERSION["gitVersion"] == real.VERSION
    assert versions.VERSION.startswith(f"{versions.MINOR}.")


@pytest.mark.parametrize("text", ["1.36", "1.36.0", "v1.36.2", "1.36.x!", "latest", "", "kube=1.36"])
def test_same_version_gives_no_warning(text):
    assert versions.find_mismatch(text, "x") == ""


@pytest.mark.parametrize(
    ("text", "named"),
    [("1.31", "1.31"), ("v1.35.4", "1.35"), ("1.3.x", "1.3"), ("kube=1.35", "1.35"), ("1.360", "1.360")],
)
def test_another_version_gives_a_warning_that_names_both(text, named):
    warning = versions.find_mismatch(text, "ENVTEST_K8S_VERSION")
    assert warning.startswith(f"ENVTEST_K8S_VERSION asks for Kubernetes {named}, but the embedded server is")


def test_command_names_the_version_and_warns(tmp_path):
    command = [sys.executable, "-m", "fairlead", "envtest", "--output", str(tmp_path)]
    environment = {**os.environ, "ENVTEST_K8S_VERSION": "1.31.0"}
    completed = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert completed.stdout == f"{tmp_path}\n"
    assert "serve Kubernetes 1.36" in completed.stderr
    assert "warning: ENVTEST_K8S_VERSION asks for Kubernetes 1.31" in completed.stderr
