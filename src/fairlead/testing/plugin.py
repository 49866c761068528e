"""The pytest plugin: an API server for each test, in this process, without Docker."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairlead.server.app import Server


@pytest.fixture
def fairlead_server() -> "Server":
    """A fresh embedded API server; `fairlead_server.transport()` is the way in, as for `op.running(transport)`."""
    from fairlead.api.world import World
    from fairlead.server.app import Server

    return Server(World())
