"""A report of what each client did: requests, conflicts, other errors, and writes that changed nothing."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from fairlead.server.http.messages import Request
from fairlead.server.http.routing import Route

_CHANGES: Final = ("update", "patch")
_UNKNOWN: Final = "(no user agent)"


@dataclass(slots=True)
class ClientCounts:
    """The counts of one client. A no-op write is an update or patch that succeeded and left the object unchanged."""

    requests: int = 0
    writes: int = 0
    conflicts: int = 0
    errors: int = 0
    no_ops: int = 0


class ClientReport:
    """Counts requests by client, which is the first word of the user agent: `manager/v1.2`, `kubectl/v1.36.4`."""

    def __init__(self) -> None:
        self.clients: dict[str, ClientCounts] = defaultdict(ClientCounts)

    def count(self, request: Request, route: Route | None, status: int, *, has_changed: bool) -> None:
        """Count one response. `has_changed` says whether the request changed any object."""
        if route is None:
            return
        agent = request.headers.get("user-agent", "").split(" ")[0] or _UNKNOWN
        counts = self.clients[agent]
        counts.requests += 1
        if request.method not in ("GET", "HEAD"):
            counts.writes += 1
        if status == 409:
            counts.conflicts += 1
        elif status >= 400:
            counts.errors += 1
        elif route.verb in _CHANGES and not has_changed and not request.first("dryRun"):
            counts.no_ops += 1

    def lines(self) -> list[str]:
        """Return a table with one line per client, most requests first."""
        rows: list[tuple[str, ...]] = [("client", "requests", "writes", "conflicts", "other errors", "no-op writes")]
        for agent, counts in sorted(self.clients.items(), key=lambda item: (-item[1].requests, item[0])):
            numbers = counts.requests, counts.writes, counts.conflicts, counts.errors, counts.no_ops
            rows.append((agent, *map(str, numbers)))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(widths[i + 1]) for i, cell in enumerate(row[1:]))])
            for row in rows
        ]
