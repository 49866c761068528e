"""A workbench in a namespace of its own, on each server."""

import pytest
from workbench import Bench, install

from fairlead.client.credentials import Static
from fairlead.client.http import Cluster, HttpTransport


@pytest.fixture
async def bench(api):
    """A writer, the wire it uses, and others' hands, in a namespace of its own, with the Widget kind served."""
    transport = HttpTransport(Cluster(api.url, api.ca_data.encode()), Static.token(api.token))
    bench = Bench(api, transport)
    await install(bench.other)
    yield bench
    await transport.close()
