"""Tests that `import fairlead` is fast because heavy modules are loaded later."""

import subprocess
import sys

import pytest

HEAVY = {"aiohttp", "asyncio", "click", "cryptography", "msgspec", "prometheus_client", "re2", "rich", "ssl", "yaml"}


@pytest.mark.smoke
def test_importing_fairlead_loads_nothing_heavy():
    code = "import sys, fairlead; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & HEAVY


def test_every_public_name_can_be_imported():
    import fairlead

    assert all(getattr(fairlead, name) is not None for name in fairlead.__all__)


def test_unknown_name_raises_an_attribute_error():
    import fairlead

    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = fairlead.NoSuchThing
