"""The Kubernetes version of the embedded server, and a warning for a test suite that wants another one."""

import re
from collections.abc import Mapping
from typing import Final

VERSION: Final = "1.36.4"
MINOR: Final = "1.36"
VARIABLES: Final = ("ENVTEST_K8S_VERSION", "ENVTEST_KUBERNETES_VERSION", "KUBE_API_TEST_API_SERVER_VERSION")
"""Variables in which test suites name the version: kubebuilder's Makefiles, and fabric8's kube-api-test."""


def find_mismatch(wanted: str, source: str) -> str:
    """Return a warning if a text names a minor version other than ours, for example 1.31, v1.31.x or 1.31.0!, else "".

    `source` says who wants the version. A text without a version, such as "latest", is no mismatch.
    """
    match = re.search(r"(?<![\d.])v?(\d+\.\d+)", wanted)
    if match is None or match[1] == MINOR:
        return ""
    return (
        f"{source} asks for Kubernetes {match[1]}, but the embedded server is Kubernetes {MINOR}: behaviour that "
        f"changed between the two differs; use a real kube-apiserver {match[1]} to test that"
    )


def find_mismatches(environment: Mapping[str, str]) -> list[str]:
    """Return a warning for each variable of VARIABLES that names another version."""
    warnings = [find_mismatch(environment.get(name, ""), name) for name in VARIABLES]
    return [warning for warning in warnings if warning]
