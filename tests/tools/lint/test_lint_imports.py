"""Linting works without the framework's dependencies."""

import subprocess
import sys

HEAVY = {"aiohttp", "asyncio", "cryptography", "msgspec", "prometheus_client", "re2", "ssl"}


def test_the_engine_imports_no_dependency_of_the_framework():
    code = "import sys, fairlead.tools.lint.engine; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & HEAVY
