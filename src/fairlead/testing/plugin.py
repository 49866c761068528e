"""The pytest plugin: an API server, a cluster and an operator in one test, without Docker.

See docs/how-to/test-an-operator.md.

An `async def` test that takes one of the fixtures runs on virtual time, so that a minute of back-off takes none; with
`--api-server=real` it runs in real time on a real kube-apiserver. No other plugin is needed for that, nor in the way.
"""

import asyncio
import inspect
import itertools
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fairlead.api.world import World
    from fairlead.runtime.running import Running
    from fairlead.server.app import Server
    from fairlead.testing.cluster import Cluster
    from fairlead.testing.real import RealServer
    from fairlead.testing.virtual import VirtualLoop

_OURS = ("api_server", "cluster", "operator")
_SERVERS = ("embedded", "real")
_numbers = itertools.count(1)
_LOOP: "pytest.StashKey[VirtualLoop]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("fairlead").addoption(
        "--api-server",
        choices=_SERVERS,
        default=os.environ.get("FAIRLEAD_API_SERVER") or "embedded",
        help="Where tests with the fixtures api_server, cluster and operator run: in this process on virtual time, or "
        "on a real kube-apiserver ($KUBEBUILDER_ASSETS, as envtest has it). Also $FAIRLEAD_API_SERVER.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_time: time passes as it does, also on the embedded server (fairlead)")
    if (named := config.getoption("--api-server")) not in _SERVERS:  # argparse checks what is said, not the default
        raise pytest.UsageError(f"$FAIRLEAD_API_SERVER is {named!r}: say {' or '.join(_SERVERS)}")


@pytest.fixture(scope="session")
def _real_api_server() -> "Iterator[RealServer]":
    from fairlead.testing.real import RealServer

    with RealServer() as server:
        yield server


@pytest.fixture
def _api_world(request: pytest.FixtureRequest) -> "Iterator[World]":
    from fairlead.api.world import World
    from fairlead.testing import virtual

    if not _is_virtual(request.node):
        yield World()
        return
    loop = request.node.stash[_LOOP] = virtual.VirtualLoop()
    yield World.seeded(virtual.VirtualClock(loop), 0)
    loop.close()


@pytest.fixture
def api_server(request: pytest.FixtureRequest, _api_world: "World") -> "Server | RealServer":
    """The server alone: a fresh embedded one, or with --api-server=real one that the whole run shares."""
    if request.config.getoption("--api-server") == "real":
        real: RealServer = request.getfixturevalue("_real_api_server")
        return real
    from fairlead.server.app import Server

    return Server(_api_world)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, api_server: "Server | RealServer", _api_world: "World") -> "Cluster":
    """A namespace of its own on that server, and what everybody else does in it: see `fairlead.testing.cluster`."""
    if not _is_ours(request.node):
        pytest.fail(f"{request.node.name} takes `cluster` or `operator`, which are awaited: make it `async def`", False)
    from fairlead.testing.cluster import Cluster
    from fairlead.testing.real import RealServer

    namespace = f"test-{next(_numbers)}-{os.getpid()}"
    if not isinstance(api_server, RealServer):
        return Cluster(_api_world, namespace, api_server.transport, api_server.inject)
    from fairlead.client.access import Cluster as Address
    from fairlead.client.credentials import Static
    from fairlead.client.http import HttpTransport

    address = Address(api_server.url, api_server.ca_data)
    return Cluster(_api_world, namespace, lambda: HttpTransport(address, Static.token(api_server.token)), None)


@pytest.fixture
def operator(cluster: "Cluster") -> "Callable[..., Coroutine[Any, Any, Running]]":
    """`running = await operator(op)`: the operator at work on the cluster, until the test ends."""
    return cluster.start


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test that takes one of our fixtures; another plugin may have wrapped it for its own loop."""
    from fairlead.testing.cluster import Cluster

    test = inspect.unwrap(pyfuncitem.obj)
    given = pyfuncitem.funcargs
    if not _is_ours(pyfuncitem):
        return None
    arguments = {name: given[name] for name in inspect.signature(test).parameters if name in given}
    found = next((value for value in given.values() if isinstance(value, Cluster)), None)

    async def main() -> None:
        async with _namespace(found):
            await test(**arguments)

    if _is_virtual(pyfuncitem):
        from fairlead.testing import virtual

        virtual.run_on(pyfuncitem.stash[_LOOP], main())
    else:
        asyncio.run(main())
    return True


@asynccontextmanager
async def _namespace(cluster: "Cluster | None") -> AsyncIterator[None]:
    if cluster is None:
        yield
        return
    await cluster.open()
    try:
        yield
    finally:
        await cluster.close()


def _is_ours(item: Any) -> bool:
    """An async test that takes one of our fixtures, not somebody else's of that name."""
    if not inspect.iscoroutinefunction(inspect.unwrap(item.obj)):
        return False
    found = item._fixtureinfo.name2fixturedefs  # noqa: SLF001 - pytest has no other way to ask whose a fixture is
    return any(name in found and found[name][-1].func.__module__ == __name__ for name in _OURS)


def _is_virtual(item: Any) -> bool:
    embedded = item.config.getoption("--api-server") == "embedded"
    return embedded and _is_ours(item) and item.get_closest_marker("real_time") is None
