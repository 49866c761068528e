"""Fixtures for every test: the `api` fixture is an embedded server and a real one.

A test that takes `api` runs on both servers and is the same test. What can only run on one says why:
`@pytest.mark.only("embedded", reason="…")`. The real one runs with RBAC; marked `rbac`, a test has it on both. Without
the binaries of a real server that half is left out, and the summary says so in one line; FAIRLEAD_REQUIRE_REAL=1 makes
it a failure.
"""

import asyncio
import itertools
import json
import os
import signal
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.client.transport import Transport
from fairlead.server.app import Server
from fairlead.testing import real
from fairlead.testing.real import RealServer

_numbers = itertools.count(1)

# The same examples on every machine. ARGS=--hypothesis-profile=explore looks for new ones.
_UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, database=None, **_UNTIMED)
settings.register_profile("explore", **_UNTIMED)
settings.load_profile("same")


@dataclass
class Api:
    """An API server as a test sees it, with a namespace of its own and the credentials of a cluster admin."""

    name: str
    url: str
    token: str
    ca_data: bytes
    namespace: str
    open: Callable[[], Transport]
    server: Server | RealServer
    opened: list[Transport] = field(default_factory=list)

    def transport(self) -> Transport:
        """Return a new transport, closed after the test: in-process if embedded, sockets if real."""
        self.opened.append(self.open())
        return self.opened[-1]


@pytest.fixture(scope="session")
def real_server():
    """A real kube-apiserver for the whole run of one xdist worker. Its namespaces are never removed: use `api`."""
    with RealServer() as server:
        yield server


@asynccontextmanager
async def _embedded(namespace, authorization):
    server = Server(World(), tokens=["embedded"], authorization=authorization)
    listening = await server.listen()
    yield Api("embedded", listening.url, "embedded", listening.ca, namespace, server.transport, server)
    await listening.close()
    server.close()


@asynccontextmanager
async def _real(server, namespace):
    cluster = Cluster(server.url, server.ca_data)

    def transport():
        return HttpTransport(cluster, StaticCredentials.token(server.token))

    yield Api("real", server.url, server.token, server.ca_data, namespace, transport, server)


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def api(request):
    """Each server in turn, with a new namespace."""
    only = request.node.get_closest_marker("only")
    if only and only.args[0] != request.param:
        pytest.skip(f"on the {only.args[0]} server only: {only.kwargs['reason']}")
    namespace = f"test-{next(_numbers)}"
    if request.param == "embedded":
        server = _embedded(namespace, "RBAC" if request.node.get_closest_marker("rbac") else "AlwaysAllow")
    else:
        server = _real(request.getfixturevalue("real_server"), namespace)
    async with server as api:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        headers = {"Content-Type": "application/json"}
        answer = await api.transport().request(
            HttpRequest("POST", "/api/v1/namespaces", headers=headers, body=json.dumps(body).encode())
        )
        assert answer.status == 201, answer.body
        yield api
        for transport in api.opened:
            await transport.close()
        if api.name == "real":
            # A cancelled request still sends its TLS shutdown in the background, so keep the event loop running for it.
            await asyncio.sleep(0.02)


def pytest_configure(config):
    # A background job of a shell ignores Ctrl-C, and so would every command that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("FAIRLEAD_REQUIRE_REAL") == "1" and (reason := real.missing()):
        raise pytest.UsageError(f"FAIRLEAD_REQUIRE_REAL is set, and {reason}")


def pytest_collection_modifyitems(config, items):
    if real.missing():
        left_out = [item for item in items if item.get_closest_marker("real")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter):
    if reason := real.missing():
        terminalreporter.write_line(f"the real half of the tests did not run: {reason}", yellow=True)
