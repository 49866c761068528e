"""Downstream is each server in turn; upstreams are embedded ones. Time is set by hand."""

import fleets
import pytest


@pytest.fixture
async def bed(api):
    bed = fleets.Bed(api.transport(), api.namespace, fleets.hand_world())
    await bed.start("project-a")
    yield bed
    await bed.clean()
