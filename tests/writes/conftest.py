"""A workbench in a namespace of its own, on each server."""

import pytest
from workbench import Bench, install


@pytest.fixture
async def bench(api):
    """A writer, the wire it uses, and others' hands, in a namespace of its own, with the Widget kind served."""
    bench = Bench(api, api.transport())
    await install(bench.other)
    return bench
