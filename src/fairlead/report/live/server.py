"""The HTTP server of the live page. It answers GET and HEAD, and changes nothing."""

import ipaddress
import logging
from collections.abc import Awaitable, Callable, Collection
from importlib import resources
from types import TracebackType
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from fairlead.api.errors import UserError
from fairlead.report.live import page
from fairlead.report.live.snapshot import ObjectNotFound, OperatorSnapshot
from fairlead.report.pass_memory import PassMemory
from fairlead.runtime.health import address
from fairlead.runtime.running import Running

log = logging.getLogger("fairlead.ui")

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_ASSETS = {"page.css": "text/css", "page.js": "text/javascript"}
_HEADERS = {
    # Nothing but the page's own two files is loaded, and no other page can embed it.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SECONDS_TO_FINISH = 1.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def parse_address(text: str, allowed_hosts: Collection[str] = ()) -> tuple[str, int]:
    """Return host and port of `8095` or `127.0.0.1:8095`.

    Raises: ValueError if the text is not an address, or not a loopback address while `allowed_hosts` is empty.
    """
    host, port = address(text, "page's")
    if not allowed_hosts and not _is_loopback(host):
        raise ValueError(
            f"{host} can be reached from other machines, and the page has neither TLS nor a password: use a loopback "
            f"address (kubectl port-forward reaches it), or name the host of the page's URL with --ui-allow-host"
        )
    return host, port


def serve_page(text: str, allowed_hosts: Collection[str] = ()) -> Callable[[Running], "LivePage"]:
    """Return a subscriber that serves the page of a run at the address `text`.

    Raises: ValueError as `parse_address` does.

    Example:
        op.run(transport, subscribers=[serve_page("8095")])
    """
    host, port = parse_address(text, allowed_hosts)
    return lambda running: LivePage(running, host, port, allowed_hosts)


class LivePage:
    """The page of one run of an operator, and the same as JSON under /debug.

    Guarantees: the page shows no values of Secrets. It needs no other host. Requests that name another host than
    loopback or one of `allowed_hosts` are rejected, so that a web site cannot read the page by DNS rebinding.

    Does not guarantee: protection from other users of this machine. There is no password.
    """

    def __init__(self, running: Running, host: str, port: int, allowed_hosts: Collection[str] = ()) -> None:
        self.host, self.port = host, port
        self._hosts = _LOOPBACK_NAMES | {name.lower().strip("[]") for name in allowed_hosts}
        self.memory = PassMemory()
        self.memory.subscribe(running.history)
        self._operator = running.operator.name
        self._snapshot = OperatorSnapshot(running, self.memory)
        self._runner: web.AppRunner | None = None
        running.serve(self)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    async def __aenter__(self) -> "LivePage":
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/", self._show_overview)
        app.router.add_get("/object", self._show_object)
        app.router.add_get("/debug", self._get_overview)
        app.router.add_get("/debug/objects", self._get_objects)
        app.router.add_get("/debug/object", self._get_object)
        for name, media_type in _ASSETS.items():
            app.router.add_get(f"/assets/{name}", _asset(name, media_type))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SECONDS_TO_FINISH)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.host, self.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise UserError(
                f"cannot serve the page at {self.host}:{self.port} ({error.strerror}): use another port, --ui PORT"
            ) from error
        self.port = self._runner.addresses[0][1]
        log.info("see what %s does at %s", self._operator, self.url)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests for another host, and set the security headers."""
        response: web.StreamResponse
        try:
            if _host_of(request) not in self._hosts:
                response = web.Response(
                    status=403, text="This page is not served under this host name: see --ui-allow-host.\n"
                )
            else:
                response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.status} {error.reason}\n")
        except _BadQuery as error:
            response = web.Response(status=400, text=f"{error}\n")
        response.headers.update(_HEADERS)
        return response

    async def _show_overview(self, request: web.Request) -> web.Response:
        query = request.query
        search, state, controller = (query.get(name, "") for name in ("search", "state", "controller"))
        objects = self._snapshot.objects(
            search=search, state=state, controller=controller, offset=_number(request, "offset", 0)
        )
        overview = self._snapshot.overview()
        return _html(page.render_overview(overview, objects, search=search, state=state, controller=controller))

    async def _show_object(self, request: web.Request) -> web.Response:
        try:
            return _html(page.render_object(self._snapshot.object(*_object_query(request))))
        except ObjectNotFound as error:
            return _html(page.render_error(self._operator, str(error)), status=404)

    async def _get_overview(self, _: web.Request) -> web.Response:
        return _json(self._snapshot.overview())

    async def _get_objects(self, request: web.Request) -> web.Response:
        filters = {name: request.query.get(name, "") for name in ("search", "state", "controller")}
        offset, limit = _number(request, "offset", 0), _number(request, "limit", 50)
        return _json(self._snapshot.objects(**filters, offset=offset, limit=limit))

    async def _get_object(self, request: web.Request) -> web.Response:
        try:
            return _json(self._snapshot.object(*_object_query(request)))
        except ObjectNotFound as error:
            return _json({"operator": self._operator, "error": str(error)}, status=404)


class _BadQuery(ValueError):
    """A parameter of the query is missing or wrong."""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _host_of(request: web.Request) -> str:
    try:
        return urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    except ValueError:
        return ""


def _number(request: web.Request, name: str, default: int) -> int:
    value = request.query.get(name, "")
    if not value:
        return default
    if not (value.isascii() and value.isdigit()) or len(value) > 9:
        raise _BadQuery(f"{name} must be a whole number, such as {name}={default}")
    return int(value)


def _object_query(request: web.Request) -> tuple[str, str, str | None]:
    kind, name = request.query.get("kind", ""), request.query.get("name", "")
    if not kind or not name:
        raise _BadQuery("name an object: ?kind=KIND&name=NAME&namespace=NAMESPACE")
    return kind, name, request.query.get("namespace") or None


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(status=status, text=text, content_type="text/html", charset="utf-8")


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")


def _asset(name: str, media_type: str) -> Handler:
    body = resources.files("fairlead.report.live").joinpath("assets", name).read_bytes()

    async def respond(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=media_type, charset="utf-8")

    return respond
