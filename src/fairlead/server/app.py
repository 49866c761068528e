"""The server: what is kept and served, and the one entry that both doors lead to."""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.api.times import rfc3339
from fairlead.api.world import World
from fairlead.server import discovery
from fairlead.server.authentication.authenticator import OPEN, Authenticator
from fairlead.server.authentication.impersonation import impersonated
from fairlead.server.authentication.service_account_tokens import ServiceAccountTokens
from fairlead.server.authentication.static_tokens import StaticTokens
from fairlead.server.authentication.users import SERVER, User
from fairlead.server.authorization import attributes, bootstrap
from fairlead.server.authorization.authorizer import AlwaysAllow, Authorizer, refusal
from fairlead.server.authorization.rbac import RBAC
from fairlead.server.crd.definitions import GROUP as DEFINITIONS_GROUP
from fairlead.server.crd.definitions import Definitions
from fairlead.server.errors.statuses import (
    StatusError,
    bad_request,
    internal_error,
    method_not_allowed,
    unknown_path,
)
from fairlead.server.golang import encoding
from fairlead.server.http import representations, routing
from fairlead.server.http.messages import AnyResponse, Request, Response
from fairlead.server.http.routing import NoSuchPath, Route, Target
from fairlead.server.metrics import Metrics
from fairlead.server.registry import builtin
from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.storage.durable import answers
from fairlead.server.storage.store import Store, Table
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs import lists, watch
from fairlead.server.verbs.access_reviews import access, rules
from fairlead.server.verbs.authentication_reviews import request_token, who_am_i, whose_token
from fairlead.server.verbs.create import create
from fairlead.server.verbs.delete import delete, delete_collection
from fairlead.server.verbs.get import get
from fairlead.server.verbs.patch import patch
from fairlead.server.verbs.pod_subresources import bind, evict
from fairlead.server.verbs.replace import replace
from fairlead.server.verbs.scale import get_scale, patch_scale, put_scale
from fairlead.server.write.managed_fields import FieldTracker
from fairlead.server.write.strategy import Rules

if TYPE_CHECKING:
    from fairlead.server.audit import Audit
    from fairlead.server.controllers import Controllers
    from fairlead.server.faults import Faults, Plan
    from fairlead.server.http.inprocess import InProcessTransport
    from fairlead.server.http.listener import Listener
    from fairlead.server.storage.durable.journal import Journal

log = logging.getLogger(__name__)
Handler = Callable[["Server", Request, Route], AnyResponse]
RouteHandler = Callable[[Request, Route | None], AnyResponse]
VERBS: dict[str, Handler] = {
    "get": get,
    "list": lists.list_objects,
    "watch": watch.watch,
    "create": create,
    "update": replace,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
POD_VERBS: dict[str, Handler] = {"binding": bind, "eviction": evict}
SUBRESOURCE_VERBS: dict[str, dict[str, Handler]] = {
    "scale": {"get": get_scale, "update": put_scale, "patch": patch_scale},
    "binding": POD_VERBS,
    "eviction": POD_VERBS,
    "token": {"create": request_token},
}
REVIEWS: dict[str, Handler] = {
    "tokenreviews": whose_token,
    "selfsubjectreviews": who_am_i,
    "selfsubjectrulesreviews": rules,
    "selfsubjectaccessreviews": access,
    "subjectaccessreviews": access,
    "localsubjectaccessreviews": access,
}
HEALTH = OPEN - {"/version"}
AUTHORIZATION = ("AlwaysAllow", "RBAC")
RETRY = 1.0  # seconds until the controllers try again what could not be stored: reads go on meanwhile
INITIAL_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


PAGE_NOT_FOUND = Response(404, b"404 page not found\n", "text/plain; charset=utf-8")


class Server:
    """A Kubernetes API server in this process.

    Guarantees: every write is atomic and seen by reads and watches in one order; nothing is read from the clock or a
    random source but through `world`. With tokens (an administrator's each, or a mapping to users), every request must
    carry a credential, health and version apart; without, none is asked for. `authorization` is AlwaysAllow or RBAC.
    `controllers` are those of `controllers.py` to run beside it: "gc", "namespace". With `data`, a directory,
    nothing is told to a client that would not survive the death of the process; close the server then.
    `audit` is a file to append the audit log to.
    """

    def __init__(
        self,
        world: World | None = None,
        *,
        tokens: Iterable[str] | Mapping[str, User] = (),
        authorization: str = "AlwaysAllow",
        controllers: Iterable[str] = (),
        data: Path | None = None,
        audit: Path | None = None,
    ) -> None:
        if authorization not in AUTHORIZATION:
            raise ValueError(f"authorization is one of {', '.join(AUTHORIZATION)}, not {authorization!r}")
        self.world = world or World()
        self.audit = _audit(audit, self.world) if audit else None
        self.faults: Faults | None = None
        self.store = Store()
        self.registry = Registry(builtin.resources())
        self.rules = Rules()
        self.metrics = Metrics()
        self.field_tracker = FieldTracker(self.registry)
        self.definitions = Definitions(self)
        wanted = frozenset(controllers)
        self._controllers = _controllers(self, wanted) if wanted else None
        tokens = tokens if isinstance(tokens, Mapping) else list(tokens)
        self._first_token = next(iter(tokens), None)
        rbac = authorization == "RBAC"
        self.authorizer: Authorizer = RBAC(self.store) if rbac else AlwaysAllow()
        self.service_account_tokens = ServiceAccountTokens(self.world, self.store, self.secret)
        self.authenticator = Authenticator(StaticTokens(tokens), self.service_account_tokens, anonymous=rbac)
        namespace = self.registry.find("", "v1", "namespaces")
        assert namespace is not None
        self.namespace_resource = namespace
        self._journal = self._opened(data) if data is not None else None
        for name in INITIAL_NAMESPACES:
            if self.store.table("", "namespaces").get("", name) is not None:
                continue
            body = encoding.encode({"metadata": {"name": name}})
            self.respond(Request("POST", "/api/v1/namespaces", {}, {"user-agent": "fairlead"}, body), trusted=True)
        if rbac:
            bootstrap.install(self)
        if self._journal is not None:
            self._journal.settle()

    @property
    def now(self) -> str:
        """The time by this world's clock, as objects carry it."""
        return rfc3339(self.world.clock.now())

    @property
    def requires_tokens(self) -> bool:
        return self._first_token is not None

    def transport(self, token: str | None = None) -> "InProcessTransport":
        """A door inside this process: a client's Transport without sockets."""
        from fairlead.server.http.inprocess import InProcessTransport

        return InProcessTransport(self, token or self._first_token)

    async def listen(
        self, host: str = "127.0.0.1", port: int = 0, *, tls: bool = True, client_ca: bytes | None = None
    ) -> "Listener":
        """Serve over HTTP until the result is closed. Port 0 picks a free one.

        Certificates by `client_ca` (PEM) name their holders: CN is the user, each O a group.
        """
        from fairlead.server.http.listener import listen

        return await listen(self, host, port, tls=tls, client_ca=client_ca)

    def inject(self, plan: "Plan | None") -> "Faults | None":
        """Follow a fault plan from now on, in place of any other; None ends all trouble. The plan's state is `faults`.

        Watches that have begun go on as they are.
        """
        from fairlead.server.faults import Faults

        self.faults = Faults(self, plan) if plan is not None else None
        return self.faults

    def secret(self, name: str, make: Callable[[], bytes]) -> bytes:
        """What `make` answers; with `data`, what it answered the first time."""
        return make() if self._journal is None else self._journal.secret(name, make)

    def close(self) -> None:
        """Let the data directory go, with everything in it, and the audit log. Without either, nothing is open."""
        if self._journal is not None:
            self._journal.close()
        if self.audit is not None:
            self.audit.close()

    @property
    def responds_immediately(self) -> bool:
        """Whether `respond` is the whole answer: no fault plan and no disk to wait for."""
        return self.faults is None and self._journal is None

    async def handle(self, request: Request) -> AnyResponse:
        """Answer one request from a door, through the fault plan where there is one (which may raise Dropped)."""
        return await self.handle_durably(request) if self.faults is None else await self.faults.handle(request)

    async def handle_durably(self, request: Request) -> AnyResponse:
        """Answer one request; with `data`, once everything that the answer can tell of is on the disk."""
        if self._journal is None:
            return self.respond(request)
        return await answers.answer(self, self._journal, request)

    def respond(self, request: Request, *, trusted: bool = False, handler: RouteHandler | None = None) -> AnyResponse:
        """Answer one request, counted and audited. Never raises, whatever a client sent.

        `handler` answers in place of `execute`.
        """
        request.time = self.world.clock.now()
        route: Route | None = None
        try:
            if trusted:
                request.user = SERVER
            else:
                self._admit(request)
            route = self._routed(request)
            answer = self.execute(request, route) if handler is None else handler(request, route)
        except NoSuchPath:
            answer = PAGE_NOT_FOUND
        except StatusError as failure:
            answer = representations.failed(request, failure)
        except RecursionError:
            answer = representations.failed(request, bad_request("exceeded max depth"))
        except Exception as error:
            log.exception("%s %s could not be answered: this is a fault of the server", request.method, request.path)
            answer = representations.failed(request, internal_error(error))
        self.metrics.count(request, route, answer.status)
        if self.audit is not None and not trusted:
            self.audit.answered(request, answer)
        return answer

    def after_write(self, resource: Resource, previous: Stored | None, stored: Stored, deleted: bool = False) -> None:
        """Called after each committed write, in its order: what the server itself must do about it."""
        if resource.group == DEFINITIONS_GROUP and resource.plural == "customresourcedefinitions":
            self.definitions.changed(stored, deleted)
        elif deleted and resource.custom:
            self.definitions.emptied(resource.group, resource.plural)
        if self.faults is not None:
            self.faults.committed()
        if self._controllers is not None:
            self._controllers.after_write(resource, previous, stored, deleted)

    def _opened(self, data: Path) -> "Journal":
        from fairlead.server.storage.durable.journal import Journal

        opened = Journal(data, self.store, lambda: self._restored(RETRY))
        self._restored()
        return opened

    def _restored(self, pause: float = 0.0) -> None:
        """Bring what follows from the store in step with it."""
        self.definitions.restored()
        if self._controllers is not None:
            self._controllers.restored(pause)

    def table(self, resource: Resource) -> Table:
        """Where the objects of a kind are kept, whatever version or group it is asked for at."""
        kept = resource.storage or resource
        return self.store.table(kept.group, kept.plural)

    def _admit(self, request: Request) -> None:
        """Find out who asks and whether they may: before anything else, and whether or not anything is there."""
        user = request.user = self.authenticator.user(request)
        request.allowed = False
        acting = impersonated(request, user, self.authorizer)
        if acting is not user:
            request.user, request.impersonator = acting, user
        if not acting.is_master:
            asked = attributes.of(request)
            decision = self.authorizer.decide(asked)
            request.reason = decision.reason
            if not decision.allowed:
                raise refusal(asked, decision.reason)
        request.allowed = True

    def _routed(self, request: Request) -> Route | None:
        target = routing.parse(request.path)
        return None if target is None else self._route(request, target)

    def execute(self, request: Request, route: Route | None) -> AnyResponse:
        """What an admitted request asks for. Raises StatusError."""
        return self._nonresource(request) if route is None else self._served(request, route)

    def _served(self, request: Request, route: Route) -> AnyResponse:
        if route.resource.deprecation:
            request.warn(route.resource.deprecation)
        verbs = SUBRESOURCE_VERBS.get(route.subresource, VERBS)
        review = REVIEWS.get(route.resource.plural) if not route.resource.custom else None
        return (review or verbs[route.verb])(self, request, route)

    def _route(self, request: Request, target: Target) -> Route | None:
        resource = self.registry.find(target.group, target.version, target.plural)
        if resource is None and not self.registry.serves(target.group, target.version):
            return None
        if resource is None or (target.namespace and not resource.namespaced):
            raise unknown_path() if self.registry.builtin_group(target.group) else NoSuchPath
        return routing.route(resource, target, request)

    def _nonresource(self, request: Request) -> AnyResponse:
        path = request.path
        if path in HEALTH:
            return Response(200, b"ok", "text/plain; charset=utf-8")
        if path == "/metrics":
            return Response(200, self.metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")
        if path.startswith("/openapi/") and request.method in ("GET", "HEAD"):
            from fairlead.server import openapi

            return openapi.respond(self.registry, request) or PAGE_NOT_FOUND
        if path == "/":
            return Response(200, encoding.encode(discovery.list_paths(self.registry)))
        if path.startswith(("//", "/apis//")):
            return PAGE_NOT_FOUND
        path = path.rstrip("/")
        aggregated = discovery.aggregated_version(request.headers.get("accept", ""))
        if (
            aggregated
            and request.method == "GET"
            and (all_of_it := discovery.aggregated_document(self.registry, path, aggregated))
        ):
            kind = f"application/json;g={discovery.AGGREGATED};v={aggregated};as=APIGroupDiscoveryList"
            return Response(200, encoding.encode(all_of_it), kind)
        if path == "/version":
            found: Object | None = discovery.VERSION
        else:
            found = discovery.find_document(self.registry, path)
        if found is None:
            parts = path.split("/")
            if len(parts) > 2 and (parts[1] == "version" or self._in_builtin_group(parts)):
                raise unknown_path()
            return PAGE_NOT_FOUND
        if request.method != "GET" and not discovery.allows_any_method(self.registry, path):
            raise method_not_allowed()
        version = path == "/version"
        grouped = path.startswith("/apis") and path.count("/") < 3
        formats = "application/json" if version else representations.FORMATS
        return representations.document(request, found, grouped=grouped, formats=formats)

    def _in_builtin_group(self, parts: list[str]) -> bool:
        return parts[1] in ("api", "apis") and self.registry.builtin_group("" if parts[1] == "api" else parts[2])


# What few servers need is imported by those that do: a start is a matter of milliseconds.


def _audit(path: Path, world: World) -> "Audit":
    from fairlead.server.audit import Audit

    return Audit(path, world)


def _controllers(server: Server, wanted: frozenset[str]) -> "Controllers":
    from fairlead.server.controllers import Controllers

    return Controllers(server, wanted)
