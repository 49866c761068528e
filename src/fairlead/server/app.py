"""The `Server` class: the state of the API server, and `handle`, the entry point for requests of both transports."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.api.times import rfc3339
from fairlead.api.world import World
from fairlead.server import nonresource
from fairlead.server.admission.chain import AdmissionChain
from fairlead.server.authentication.authenticator import Authenticator
from fairlead.server.authentication.impersonation import resolve_impersonation
from fairlead.server.authentication.service_account_tokens import ServiceAccountTokens
from fairlead.server.authentication.static_tokens import StaticTokens
from fairlead.server.authentication.users import SERVER, User
from fairlead.server.authorization.attributes import request_attributes
from fairlead.server.authorization.authorizer import AlwaysAllow, Authorizer, access_denied
from fairlead.server.authorization.rbac import RBAC
from fairlead.server.crd.definitions import CustomResourceDefinitions
from fairlead.server.errors.statuses import StatusError, bad_request, internal_error, status_error, unknown_path
from fairlead.server.golang import encoding
from fairlead.server.http import representations, routing
from fairlead.server.http.json_text import finish_json
from fairlead.server.http.messages import AnyResponse, Request
from fairlead.server.http.options import check_timeout
from fairlead.server.http.routing import NoSuchPath, Route
from fairlead.server.initial_objects import InitialObjects, parse_service_range
from fairlead.server.metrics import Metrics
from fairlead.server.registry import strategies
from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Resource
from fairlead.server.storage.store import ObjectTable, Store
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs.handlers import find_handler
from fairlead.server.webhooks.calls import WebhookCaller, WebhookCallNeeded, use_memory
from fairlead.server.write.managed_fields import FieldTracker

if TYPE_CHECKING:
    from fairlead.server.audit import AuditLog
    from fairlead.server.audit_policy import AuditPolicy
    from fairlead.server.authentication.token_keys import TokenSettings
    from fairlead.server.client_report import ClientReport
    from fairlead.server.controllers import Controllers
    from fairlead.server.faults import FaultInjector, Plan
    from fairlead.server.http.inprocess import InProcessTransport
    from fairlead.server.http.listener import Listener
    from fairlead.server.storage.durable.journal import DurableJournal

log = logging.getLogger(__name__)

# Executes a request that is authorized and routed; the route is None for a path that is not a resource path.
Executor = Callable[[Request, Route | None], AnyResponse]

AUTHORIZATION_MODES = ("AlwaysAllow", "RBAC")
REQUEST_TIMEOUT = 60.0  # seconds that a request may wait for webhooks, as on a real server
RETRY_DELAY = 1.0  # seconds before the controllers retry writes that could not be stored; reads are served meanwhile
SERVICE_RANGE = "10.0.0.0/24"  # the default of kube-apiserver


class Server:
    """A Kubernetes API server in this process.

    Guarantees: every write is atomic, and all reads and watches see writes in one order. The server reads the time and
    random numbers only through `world`. With `data`, a client never sees a change that is lost if the process dies.

    Parameters:
        world: the clock, the random source and the source of UIDs.
        tokens: bearer tokens of administrators, or a mapping from token to user. With tokens, every request needs a
            credential, except for health and version. Without tokens, every request is an administrator's.
        authorization: AlwaysAllow or RBAC.
        controllers: the controllers of `controllers.py` to run: "gc", "namespace".
        data: a directory that keeps the state. Close the server to release it.
        audit: a file to which the audit log is appended.
        audit_policy: which requests are logged, and at which level. The default is Metadata for all.
        webhook_caller: calls webhooks. The default one calls webhooks on loopback over HTTPS.
        store: the state of an earlier server, which this one continues. Close the earlier one first.
        token_settings: issuer, audiences and keys of ServiceAccount tokens.
        service_range: the IPv4 network of the cluster IPs of Services.
        enable_plugins, disable_plugins: names of admission plugins, as in the flags of kube-apiserver.

    Attributes:
        world: see above.
        store: all objects, by table.
        registry: the kinds that are served, built-in and custom.
        definitions: the CustomResourceDefinitions; it adds their kinds to the registry.
        rules: what is special about writing single built-in kinds.
        field_tracker: computes the managedFields of each write.
        authenticator: finds the user of a request.
        service_account_tokens: issues and verifies the tokens of ServiceAccounts.
        admission: the admission plugins, which change or reject writes.
        authorizer: decides whether the user may do what the request asks for.
        namespace_resource: the kind Namespace.
        metrics: counts responses, for /metrics.
        audit: the audit log, or None.
        faults: the fault plan in effect, or None.
        clients: counts what each client did, or None. Set it before the first request.
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
        audit_policy: "AuditPolicy | None" = None,
        webhook_caller: WebhookCaller | None = None,
        store: Store | None = None,
        token_settings: "TokenSettings | None" = None,
        service_range: str = SERVICE_RANGE,
        enable_plugins: Iterable[str] = (),
        disable_plugins: Iterable[str] = (),
    ) -> None:
        if authorization not in AUTHORIZATION_MODES:
            raise ValueError(f"authorization is one of {', '.join(AUTHORIZATION_MODES)}, not {authorization!r}")
        self.world = world or World()
        self.audit = _open_audit_log(audit, self.world, audit_policy) if audit else None
        self.faults: FaultInjector | None = None
        self.clients: ClientReport | None = None
        rbac = authorization == "RBAC"
        initial = InitialObjects(self.world, parse_service_range(service_range), rbac=rbac)
        self.store = store or Store(initial=initial.build if data is None else None)
        self.registry = Registry(strategies.resources())
        self.metrics = Metrics()
        self.field_tracker = FieldTracker(self.registry)
        self.definitions = CustomResourceDefinitions(self)
        self._webhook_caller = webhook_caller
        self.admission = AdmissionChain(self, enable_plugins, disable_plugins)
        names = frozenset(controllers)
        self._controllers = _create_controllers(self, names) if names else None
        tokens = tokens if isinstance(tokens, Mapping) else list(tokens)
        self._first_token = next(iter(tokens), None)
        self.authorizer: Authorizer = RBAC(self.store) if rbac else AlwaysAllow()
        self.service_account_tokens = ServiceAccountTokens(self.world, self.store, self.load_secret, token_settings)
        self.authenticator = Authenticator(StaticTokens(tokens), self.service_account_tokens, allow_anonymous=rbac)
        namespace = self.registry.find("", "v1", "namespaces")
        assert namespace is not None
        self.namespace_resource = namespace
        self._journal = self._open_journal(data) if data is not None else None
        if store is not None:
            self._rebuild_from_store()
        if self._journal is not None:
            # The data directory keeps deletions of initial objects only until the next start, like a real server.
            initial.add_missing(self.store)
            self._journal.store_initial_objects()

    @property
    def now(self) -> str:
        """Return the time of the server's clock as RFC 3339 text, such as 2024-01-02T03:04:05Z."""
        return rfc3339(self.world.clock.now())

    @property
    def requires_tokens(self) -> bool:
        """Whether the server was created with tokens, so that requests need a credential."""
        return self._first_token is not None

    def transport(self, token: str | None = None) -> "InProcessTransport":
        """Return a client Transport that calls this server without sockets. The default is the server's first token."""
        from fairlead.server.http.inprocess import InProcessTransport

        return InProcessTransport(self, token or self._first_token)

    async def listen(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: bool = True,
        client_ca: bytes | None = None,
        certificate: tuple[Path, Path] | None = None,
    ) -> "Listener":
        """Serve over HTTP until the returned listener is closed. Port 0 picks a free port.

        A client certificate signed by `client_ca` (PEM) authenticates its holder: CN is the user, each O a group. As on
        a real server, the ConfigMap extension-apiserver-authentication in kube-system has the CA.
        `certificate` names the files of the server's certificate and of its key (PEM). Without it, the server creates a
        certificate, and the listener's `ca` is the authority that signed it.
        """
        from fairlead.server.http.listener import listen

        if client_ca is not None:
            self._publish_client_ca(client_ca)
        return await listen(self, host, port, tls=tls, client_ca=client_ca, certificate=certificate)

    def inject(self, plan: "Plan | None") -> "FaultInjector | None":
        """Replace the current fault plan by `plan`, or end fault injection if `plan` is None.

        Returns the new fault injector, which is also the attribute `faults`. Watches that are already open are not
        affected.
        """
        from fairlead.server.faults import FaultInjector

        self.faults = FaultInjector(self, plan) if plan is not None else None
        return self.faults

    @property
    def webhook_caller(self) -> WebhookCaller:
        """Calls the webhooks of this server."""
        if self._webhook_caller is None:
            from fairlead.server.webhooks.https_caller import HttpsCaller

            self._webhook_caller = HttpsCaller()
        return self._webhook_caller

    def load_secret(self, name: str, create: Callable[[], bytes]) -> bytes:
        """Return the secret called `name`, such as a signing key.

        Without `data`, every call creates a new secret with `create`. With `data`, the first call creates the secret
        and stores it in the data directory; later calls return the stored secret.
        """
        return create() if self._journal is None else self._journal.get_or_create_secret(name, create)

    def close(self) -> None:
        """Release the data directory, the audit log and the connections to webhooks, if there are any."""
        if self._webhook_caller is not None:
            self._webhook_caller.close()
        if self._journal is not None:
            self._journal.close()
        if self.audit is not None:
            self.audit.close()

    @property
    def responds_immediately(self) -> bool:
        """Whether a transport may call `respond` instead of awaiting `handle`.

        True if the server has neither a fault plan, a data directory nor webhooks, so that no request has to wait.
        """
        has_webhooks = self.admission.is_dynamic or self.definitions.has_conversion_webhooks
        return self.faults is None and self._journal is None and not has_webhooks

    async def handle(self, request: Request) -> AnyResponse:
        """Return the response to a request of a transport. The fault plan, if there is one, may change the response.

        Raises ConnectionDropped if the fault plan breaks the connection.
        """
        return await self.handle_durably(request) if self.faults is None else await self.faults.handle(request)

    async def handle_durably(self, request: Request) -> AnyResponse:
        """Return the response to a request. With `data`, wait until every change that the response shows is on disk."""
        if self._journal is None:
            return await self.respond_or_wait(request)
        from fairlead.server.http.durable_responses import respond_durably

        return await respond_durably(self, self._journal, request)

    async def respond_or_wait(self, request: Request) -> AnyResponse:
        """Return the response to a request, after calling the webhooks that it needs. Other requests go on meanwhile.

        The request runs again after each call. It sees the newest objects then, and asks again if they changed. Like on
        a real server, a request that still waits after a minute gets a 504.
        """
        deadline = asyncio.get_running_loop().time() + REQUEST_TIMEOUT
        while True:
            try:
                with use_memory(request.memory):
                    return self.respond(request)
            except WebhookCallNeeded as needed:
                if asyncio.get_running_loop().time() > deadline:
                    return self.respond(request, executor=_reject_late_request)
                await request.memory.make_calls(self.webhook_caller, needed)
                request.warnings.clear()
                request.audit_annotations.clear()

    def respond(self, request: Request, *, is_trusted: bool = False, executor: Executor | None = None) -> AnyResponse:
        """Return the response to a request, and record the request in the metrics and the audit log.

        Raises WebhookCallNeeded, and nothing else, if the request has to wait for a webhook: see `respond_or_wait`.

        `is_trusted` requests come from the server itself: they are neither authenticated nor audited. `executor`
        replaces `execute`.
        """
        if not request.memory.answers:
            request.time = self.world.clock.now()
        version = self.store.version
        route: Route | None = None
        try:
            if is_trusted:
                request.user = SERVER
            else:
                check_timeout(request)
                self._authorize(request)
            route = self._find_route(request)
            response = (executor or self.execute)(request, route)
        except WebhookCallNeeded:
            raise
        except NoSuchPath:
            response = nonresource.PAGE_NOT_FOUND
        except StatusError as error:
            response = representations.error_response(request, error)
        except RecursionError:
            response = representations.error_response(request, bad_request("exceeded max depth"))
        except Exception as error:
            log.exception("%s %s failed: this is a bug in the embedded server", request.method, request.path)
            response = representations.error_response(request, internal_error(error))
        self.metrics.count(request, route, response.status)
        if self.clients is not None and not is_trusted:
            self.clients.count(request, route, response.status, has_changed=self.store.version != version)
        if self.audit is not None and not is_trusted:
            self.audit.record(request, response)
        finish_json(request, response)
        return response

    def execute(self, request: Request, route: Route | None) -> AnyResponse:
        """Return the response to an authorized request: run its verb, or serve its non-resource path.

        Raises StatusError.
        """
        if route is None:
            return nonresource.serve(self, request)
        if route.resource.deprecation:
            request.warn(route.resource.deprecation)
        return find_handler(route)(self, request, route)

    def after_write(
        self, resource: Resource, previous: Stored | None, stored: Stored, is_deleted: bool = False
    ) -> None:
        """Update the served CRDs, the controllers and the fault injector after a committed write.

        Called for every write, in commit order.
        """
        if resource.is_definition:
            self.definitions.after_write(stored, is_deleted)
        elif is_deleted and resource.custom:
            self.definitions.after_instance_delete(resource.group, resource.plural)
        if self.faults is not None:
            self.faults.after_write()
        if self._controllers is not None:
            self._controllers.after_write(resource, previous, stored, is_deleted)

    def table(self, resource: Resource) -> ObjectTable:
        """Return the store's table for the objects of a kind. All versions and groups of the kind share one table."""
        storage = resource.storage or resource
        return self.store.table(storage.group, storage.plural)

    def _publish_client_ca(self, client_ca: bytes) -> None:
        """Write the CA of client certificates to the ConfigMap where other programs of the control plane read it."""
        name, path = "extension-apiserver-authentication", "/api/v1/namespaces/kube-system/configmaps"
        body = encoding.encode({"metadata": {"name": name}, "data": {"client-ca-file": client_ca.decode()}})
        if self.store.table("", "configmaps").get("kube-system", name) is None:
            request = Request("POST", path, {}, {"user-agent": "kube-apiserver"}, body)
        else:
            request = Request("PUT", f"{path}/{name}", {}, {"user-agent": "kube-apiserver"}, body)
        self.respond(request, is_trusted=True)

    def _open_journal(self, data_directory: Path) -> "DurableJournal":
        """Load the stored objects from the data directory, and return the journal that stores further writes."""
        from fairlead.server.storage.durable.journal import DurableJournal

        journal = DurableJournal(data_directory, self.store, lambda: self._rebuild_from_store(RETRY_DELAY))
        self._rebuild_from_store()
        return journal

    def _rebuild_from_store(self, delay: float = 0.0) -> None:
        """Rebuild the served CRDs and the controllers' index from the store.

        Needed after the store was loaded from disk, and after writes were undone because the disk failed.
        """
        self.definitions.serve_stored()
        if self._controllers is not None:
            self._controllers.rebuild(delay)

    def _authorize(self, request: Request) -> None:
        """Set the user of a request and raise 401 or 403 if the user has no access, even if the path does not exist."""
        user = request.user = self.authenticator.authenticate(request)
        if self.audit is not None:
            self.audit.begin(request)
        request.allowed = False
        acting = resolve_impersonation(request, user, self.authorizer)
        if acting is not user:
            request.user, request.impersonator = acting, user
        if not acting.is_superuser:
            attributes = request_attributes(request)
            decision = self.authorizer.decide(attributes)
            request.reason = decision.reason
            if not decision.allowed:
                raise access_denied(attributes, decision.reason)
        request.allowed = True

    def _find_route(self, request: Request) -> Route | None:
        """Return the kind, object and verb that a request addresses, or None for a path such as /healthz or /apis."""
        target = routing.parse(request.path)
        if target is None:
            return None
        resource = self.registry.find(target.group, target.version, target.plural)
        if resource is None and not self.registry.serves(target.group, target.version):
            return None
        if resource is None or (target.namespace and not resource.namespaced):
            raise unknown_path() if self.registry.is_builtin_group(target.group) else NoSuchPath
        return routing.resolve_route(resource, target, request)


def _reject_late_request(request: Request, route: Route | None) -> AnyResponse:
    message = "Timeout: request did not complete within requested timeout - context deadline exceeded"
    raise status_error(504, "Timeout", message, {})


# Few servers need the audit log or the controllers. They are imported on demand, to keep the start fast.


def _open_audit_log(path: Path, world: World, policy: "AuditPolicy | None") -> "AuditLog":
    from fairlead.server.audit import AuditLog

    return AuditLog(path, world, policy) if policy is not None else AuditLog(path, world)


def _create_controllers(server: Server, names: frozenset[str]) -> "Controllers":
    from fairlead.server.controllers import Controllers

    return Controllers(server, names)
