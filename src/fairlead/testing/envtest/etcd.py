"""The program `etcd`: it holds the state of the embedded server, and serves the API for each `kube-apiserver`.

It answers /health at once, and loads the server meanwhile.
"""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fairlead.testing.envtest import apiserver
from fairlead.testing.envtest.flags import LOOPBACK, FlagError, Flags, ServerSettings, parse_request, read_flags
from fairlead.testing.envtest.versions import MINOR, find_mismatches

if TYPE_CHECKING:
    from fairlead.server.app import Server
    from fairlead.server.storage.store import Store

HEALTHY = b'{"health":"true","reason":""}'
CONTROLLERS = "FAIRLEAD_CONTROLLERS"  # which controllers run, separated by commas
FAULTS = "FAIRLEAD_FAULTS"  # a fault plan, or the seed of one
REPORT = "FAIRLEAD_REPORT"  # a file to which the report about faults and clients is appended
PARENT_INTERVAL = 1.0  # seconds between the checks whether the test suite still runs
MAX_REQUEST = 1 << 20  # bytes of the flags and the environment of kube-apiserver

Report = Callable[[str], None]


class State:
    """The state that outlives each `kube-apiserver`, and the server that uses it at the moment.

    Several `kube-apiserver` at the same time share the server of the first one, with its flags.
    """

    def __init__(self) -> None:
        self._store: Store | None = None
        self._server: Server | None = None
        self._users = 0

    @contextlib.asynccontextmanager
    async def serve(
        self, settings: ServerSettings, environment: dict[str, str], folder: Path
    ) -> AsyncIterator[tuple[str, "Server"]]:
        """Serve the API during the context. Yields the URL and the server.

        Paths in `environment` are relative to `folder`.

        Raises ValueError if a flag or variable has a wrong value, and OSError if the port is in use.
        """
        server = self._server
        if server is None:
            server = self._create_server(settings, environment, folder)
        self._users += 1
        self._server, self._store = server, server.store
        try:
            listener = await server.listen(**settings.listener)
            try:
                yield listener.url, server
            finally:
                await listener.close()
        finally:
            self._users -= 1
            if not self._users:
                self._server = None
                server.close()

    def _create_server(self, settings: ServerSettings, environment: dict[str, str], folder: Path) -> "Server":
        from fairlead.api.world import World
        from fairlead.server.app import Server
        from fairlead.server.authentication.users import ADMIN

        world = World()
        # Without any token, every request would be an administrator's. Nobody knows this one.
        tokens = settings.server["tokens"] or {f"{world.random.getrandbits(128):032x}": ADMIN}
        controllers = [name for name in environment.get(CONTROLLERS, "").split(",") if name]
        server = Server(world, store=self._store, controllers=controllers, **settings.server | {"tokens": tokens})
        if source := environment.get(FAULTS):
            from fairlead.server.client_report import ClientReport
            from fairlead.server.faults import Plan

            server.inject(Plan.load(source if source.isdecimal() else str(folder / source)))
            server.clients = ClientReport()
        return server


async def run(arguments: list[str]) -> int:
    """Run until SIGTERM or SIGINT. Return the exit status."""
    flags = Flags(arguments, Path.cwd())
    url = flags.last("listen-client-urls", f"http://{LOOPBACK}:2379").split(",")[0]
    port = urlsplit(url).port or 2379
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    path = _prepare_socket(str(port))
    try:
        health = await asyncio.start_server(_answer_health, LOOPBACK, port)
    except OSError as error:
        print(f"etcd: cannot listen on {LOOPBACK}:{port}: {error.strerror}: choose another port", file=sys.stderr)
        return 1
    loading = loop.run_in_executor(None, _load_server)
    state = State()
    connections: set[asyncio.Task[None]] = set()

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = loop.create_task(_serve_connection(state, loading, reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    control = await asyncio.start_unix_server(connect, path, limit=MAX_REQUEST)
    print(
        f"etcd of fairlead: holds the state of an embedded Kubernetes {MINOR} API server, {LOOPBACK}:{port}", flush=True
    )
    watching = loop.create_task(_stop_with_parent(stopped))
    try:
        await stopped.wait()
    finally:
        watching.cancel()
        health.close()
        control.close()
        path.unlink(missing_ok=True)
        for task in list(connections):
            task.cancel()
        if connections:
            await asyncio.wait(connections)
    return 0


async def _stop_with_parent(stopped: asyncio.Event) -> None:
    """Stop when the test suite is gone. Suites that crash, and some that end, do not stop what they started."""
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - the kernel has no event for it
        await asyncio.sleep(PARENT_INTERVAL)
    stopped.set()


def _prepare_socket(port: str) -> Path:
    """Return the path of the control socket. Raises PermissionError if its folder belongs to another user."""
    path = Path(apiserver.socket_path(port))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    info = path.parent.lstat()
    if info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise PermissionError(f"{path.parent} is accessible to other users: remove it, or set TMPDIR")
    path.unlink(missing_ok=True)  # left by a process that was killed
    return path


def _load_server() -> None:
    """Import what the first `kube-apiserver` needs, while the test suite still creates its certificates."""
    import fairlead.server.app
    import fairlead.server.authentication.token_keys
    import fairlead.server.http.listener

    fairlead.server.app.Server(authorization="RBAC")  # fills the caches that all servers share
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


async def _answer_health(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request of a connection: 200 for /health, /readyz, /livez and /version, 404 for other paths."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            known = head.split(b" ")[1].startswith((b"/health", b"/readyz", b"/livez", b"/version"))
            status = b"200 OK" if known else b"404 Not Found"
            body = HEALTHY if known else b""
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
            await writer.drain()
    writer.close()


async def _serve_connection(
    state: State, loading: "asyncio.Future[None]", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve the API for one `kube-apiserver` until it closes its side of the connection."""

    def report(text: str) -> None:
        for line in text.splitlines():
            writer.write(f"log {line}\n".encode())

    status = 0
    try:
        arguments, folder, environment = parse_request(await reader.readline())
        await loading
        settings = read_flags(arguments, folder)
        async with state.serve(settings, environment, folder) as (url, server):
            for note in [*find_mismatches(environment), *settings.notes]:
                report(f"kube-apiserver: {note}")
            report(f"kube-apiserver: fairlead's embedded server, Kubernetes {MINOR}, serves on {url}")
            await reader.read()  # returns when kube-apiserver ends
        if server.faults is not None and server.clients is not None:
            lines = [server.faults.describe(), *server.clients.lines()]
            report("\n".join(lines))
            if path := environment.get(REPORT):
                with (folder / path).open("a", encoding="utf-8") as file:
                    file.write("".join(f"{line}\n" for line in lines))
    except FlagError as error:
        report(f"kube-apiserver: {error}")
        status = 1
    except (ValueError, OSError) as error:
        report(f"kube-apiserver: cannot start: {error}")
        status = 1
    finally:
        with contextlib.suppress(ConnectionError):
            writer.write(f"exit {status}\n".encode())
            writer.close()
            await writer.wait_closed()


def main() -> None:
    """Run the program."""
    gc.disable()  # As in `fairlead serve`: start-up allocates objects that stay.
    try:
        sys.exit(asyncio.run(run(sys.argv[1:])))
    except PermissionError as error:
        sys.exit(f"etcd: {error}")
