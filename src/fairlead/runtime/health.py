"""The HTTP endpoints for the kubelet and for Prometheus: /healthz, /readyz and /metrics."""

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType

from aiohttp import web

from fairlead.runtime.metrics import Metrics

Check = Callable[[], Mapping[str, str]]
"""A function that returns the problems by name; an empty mapping means healthy."""


def address(text: str, server: str = "health") -> tuple[str, int]:
    """Parse `8080` or `0.0.0.0:8080` into host and port.

    The default host is the loopback address, because the endpoints show names of objects. A kubelet needs `0.0.0.0`.

    Raises: ValueError if the text is not an address.
    """
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ValueError(f"the {server} address must be PORT or HOST:PORT, got {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


class Health:
    """An HTTP server for the endpoints, as an async context manager. Port 0 is replaced by the chosen port."""

    def __init__(self, host: str, port: int, *, healthy: Check, ready: Check, metrics: Metrics) -> None:
        self.host, self.port = host, port
        self._healthy, self._ready, self._metrics = healthy, ready, metrics
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> "Health":
        app = web.Application()
        app.router.add_get("/healthz", _endpoint(self._healthy))
        app.router.add_get("/readyz", _endpoint(self._ready))
        app.router.add_get("/metrics", self._scrape)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.host, self.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise OSError(
                error.errno,
                f"cannot serve health at {self.host}:{self.port} ({error.strerror}): use another address",
            ) from error
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _scrape(self, _: web.Request) -> web.Response:
        body = self._metrics.text()
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _endpoint(check: Check) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def respond(_: web.Request) -> web.Response:
        problems = check()
        if not problems:
            return web.Response(text="ok\n")
        return web.Response(status=503, text="".join(f"{name}: {text}\n" for name, text in sorted(problems.items())))

    return respond
