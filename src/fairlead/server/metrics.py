"""/metrics: requests by verb, kind and code, with the metric names of a real server."""

from collections import Counter

from fairlead.server.http.messages import Request
from fairlead.server.http.routing import Route

_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
    "binding": "POST",
    "eviction": "POST",
}
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "dry_run", "code")
_HELP = "# HELP apiserver_request_total Requests by verb, kind and code.\n# TYPE apiserver_request_total counter\n"


class Metrics:
    """Counts responses by verb, kind and code.

    `apiserver_request_total{code="409"}` shows conflicts, as on a real server.
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, ...]] = Counter()

    def count(self, request: Request, route: Route | None, code: int) -> None:
        """Count one response with this status code. `route` is None for a path that is not a resource path."""
        if route is None:
            self._requests[request.method, "", "", "", "", "", "", str(code)] += 1
            return
        verb = _VERBS.get(route.verb, request.method)
        if verb == "PATCH" and request.headers.get("content-type", "").startswith("application/apply-patch"):
            verb = "APPLY"
        scope = "resource" if route.name else "namespace" if route.namespace else "cluster"
        resource = route.resource
        dry_run = request.first("dryRun")
        key = (verb, resource.group, resource.version, resource.plural, route.subresource, scope, dry_run, str(code))
        self._requests[key] += 1

    def total(self, **labels: str) -> int:
        """Return how many responses have these label values, for example `total(verb="PATCH", code="409")`."""
        required = [(_LABELS.index(name), value) for name, value in labels.items()]
        return sum(n for key, n in self._requests.items() if all(key[index] == value for index, value in required))

    def text(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        lines = [
            "apiserver_request_total{"
            + ",".join(f'{name}="{_escape(value)}"' for name, value in zip(_LABELS, key, strict=True))
            + f"}} {count}\n"
            for key, count in sorted(self._requests.items())
        ]
        return _HELP + "".join(lines)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
