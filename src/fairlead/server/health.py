"""The health paths /healthz, /livez and /readyz: their single checks, ?verbose and ?exclude.

The embedded server is healthy from its start on. It has the checks of a real server, because clients ask for them.
"""

from typing import Final

from fairlead.server.http.messages import Request, Response

_HOOKS_UNTIL_REGISTRATION: Final = (
    "start-apiserver-admission-initializer", "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer", "priority-and-fairness-filter", "storage-object-count-tracker-hook",
    "start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced",
    "start-system-namespaces-controller", "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller", "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector", "storage-readiness",
    "start-legacy-token-tracking-controller", "start-service-ip-repair-controllers", "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes", "priority-and-fairness-config-producer", "bootstrap-controller",
    "start-kubernetes-service-cidr-controller", "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller", "apiservice-status-remote-available-controller",
    "apiservice-registration-controller", "apiservice-discovery-controller", "kube-apiserver-autoregistration",
)  # fmt: skip
_COMMON: Final = (
    *(f"poststarthook/{name}" for name in _HOOKS_UNTIL_REGISTRATION),
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
_ALIVE: Final = ("ping", "log", "loopback-serving-certificate", "etcd", *_COMMON)
CHECKS: Final = {  # in the order of a real server's ?verbose
    "healthz": _ALIVE,
    "livez": _ALIVE,
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_COMMON, "shutdown"),
}


def respond(request: Request) -> Response | None:
    """Return the response for a health path or one of its checks, or None for any other path."""
    name, slash, check = request.path[1:].partition("/")
    checks = CHECKS.get(name)
    if checks is None or (slash and check not in checks):
        return None
    text = _describe(name, request) if not slash and "verbose" in request.query else "ok"
    return Response(200, text.encode(), "text/plain; charset=utf-8")


def _describe(name: str, request: Request) -> str:
    excluded = {check for check in request.query.get("exclude", ()) if check}
    lines = [f"[+]{check} {'excluded: ok' if check in excluded else 'ok'}" for check in CHECKS[name]]
    if unknown := sorted(excluded - set(CHECKS[name])):
        names = ",".join(f'"{check}"' for check in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    return "\n".join([*lines, f"{name} check passed", ""])
