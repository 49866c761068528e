"""Tests that only the HTTP transport imports aiohttp."""

import subprocess
import sys


def test_only_the_http_transport_loads_aiohttp():
    code = (
        "import sys, fairlead.client.client, fairlead.client.locate\n"
        "assert 'aiohttp' not in sys.modules\n"
        "import fairlead.client.http\n"
        "assert 'aiohttp' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
