"""The pytest plugin: the fixtures `api_server`, `cluster` and `operator`, without Docker.

See docs/how-to/test-an-operator.md.

An `async def` test that takes one of the fixtures runs in virtual time: a minute of back-off takes no time. With
`--api-server=real` it runs in real time on a real kube-apiserver. No other asyncio plugin is needed.
"""

import asyncio
import inspect
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fairlead.api.world import World
    from fairlead.server.app import Server
    from fairlead.testing.cluster import Cluster, StartOperator
    from fairlead.testing.real import RealServer
    from fairlead.testing.virtual import VirtualLoop

_FIXTURES = ("api_server", "cluster", "operator")
_SERVERS = ("embedded", "real")
_numbers = itertools.count(1)
_LOOP: "pytest.StashKey[VirtualLoop]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("fairlead").addoption(
        "--api-server",
        choices=_SERVERS,
        default=os.environ.get("FAIRLEAD_API_SERVER") or "embedded",
        help="The server for tests with the fixtures api_server, cluster and operator: embedded, in virtual time, or a "
        "real kube-apiserver (found by $KUBEBUILDER_ASSETS, as in envtest). Also $FAIRLEAD_API_SERVER.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_time: run in real time, also on the embedded server (fairlead)")
    if (server_name := config.getoption("--api-server")) not in _SERVERS:  # argparse does not check the default.
        raise pytest.UsageError(f"$FAIRLEAD_API_SERVER is {server_name!r}: set it to {' or '.join(_SERVERS)}")


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
    """Return an API server: a new embedded server for each test, or one real server with --api-server=real."""
    if request.config.getoption("--api-server") == "real":
        real: RealServer = request.getfixturevalue("_real_api_server")
        return real
    from fairlead.server.app import Server

    return Server(_api_world)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, api_server: "Server | RealServer", _api_world: "World") -> "Cluster":
    """Return a `fairlead.testing.Cluster` with a new namespace for this test."""
    if not _uses_our_fixtures(request.node):
        pytest.fail(f"{request.node.name} uses the fixture `cluster` or `operator`, so it must be `async def`", False)
    from fairlead.testing.cluster import Cluster
    from fairlead.testing.real import RealServer

    namespace = f"test-{next(_numbers)}-{os.getpid()}"
    if not isinstance(api_server, RealServer):
        return Cluster(_api_world, namespace, api_server.transport, api_server.inject)
    from fairlead.client.access import Cluster as Address
    from fairlead.client.credentials import StaticCredentials
    from fairlead.client.http import HttpTransport

    address = Address(api_server.url, api_server.ca_data)
    return Cluster(
        _api_world, namespace, lambda: HttpTransport(address, StaticCredentials.token(api_server.token)), None
    )


@pytest.fixture
def operator(cluster: "Cluster") -> "StartOperator":
    """Return a function that runs an operator until the test ends: `running = await operator(op)`."""
    return cluster.start


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test that uses one of our fixtures. Other tests are left to pytest and other plugins."""
    from fairlead.testing.cluster import Cluster

    test = inspect.unwrap(pyfuncitem.obj)
    values = pyfuncitem.funcargs
    if not _uses_our_fixtures(pyfuncitem):
        return None
    arguments = {name: values[name] for name in inspect.signature(test).parameters if name in values}
    cluster = next((value for value in values.values() if isinstance(value, Cluster)), None)

    async def main() -> None:
        async with _open(cluster):
            await test(**arguments)

    __tracebackhide__ = True
    try:
        if _is_virtual(pyfuncitem):
            from fairlead.testing import virtual

            virtual.run_on(pyfuncitem.stash[_LOOP], main())
        else:
            asyncio.run(main())
    except Exception as error:
        raise error.with_traceback(_find_test_traceback(error, test)) from error.__cause__
    return True


def _find_test_traceback(error: BaseException, test: Callable[..., Any]) -> TracebackType | None:
    """Return the traceback of `error` without the frames of the event loop before the test function."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not test.__code__:
        trace = trace.tb_next
    return trace or error.__traceback__


@asynccontextmanager
async def _open(cluster: "Cluster | None") -> AsyncIterator[None]:
    if cluster is None:
        yield
        return
    await cluster.open()
    try:
        yield
    finally:
        await cluster.close()


def _uses_our_fixtures(item: Any) -> bool:
    """Return whether a test is `async def` and uses a fixture of this module (not another of the same name)."""
    if not inspect.iscoroutinefunction(inspect.unwrap(item.obj)):
        return False
    fixtures = item._fixtureinfo.name2fixturedefs  # noqa: SLF001 - pytest has no public way to find a fixture's module
    return any(name in fixtures and fixtures[name][-1].func.__module__ == __name__ for name in _FIXTURES)


def _is_virtual(item: Any) -> bool:
    is_embedded = item.config.getoption("--api-server") == "embedded"
    return is_embedded and _uses_our_fixtures(item) and item.get_closest_marker("real_time") is None
