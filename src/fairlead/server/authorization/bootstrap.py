"""The ClusterRoles and ClusterRoleBindings that a server with RBAC creates when it starts."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.server.authorization.rbac import GROUP
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Request

if TYPE_CHECKING:
    from fairlead.server.app import Server

AGENT = {"user-agent": "kube-apiserver"}


@cache
def _read_defaults() -> dict[str, Any]:
    path = files("fairlead.server.authorization") / "bootstrap.json"
    facts: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    return facts


def install_default_roles(server: "Server") -> None:
    """Create the default ClusterRoles and ClusterRoleBindings that do not exist. Existing objects stay unchanged."""
    for plural in ("clusterroles", "clusterrolebindings"):
        table = server.store.table(GROUP, plural)
        for item in _read_defaults()[plural]:
            if table.get("", item["metadata"]["name"]) is None:
                request = Request("POST", f"/apis/{GROUP}/v1/{plural}", {}, AGENT, encoding.encode(item))
                server.respond(request, is_trusted=True)
