"""The clusters of a run: one downstream, the upstreams by name, and the retired ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.api.builtin import Namespace
from fairlead.api.errors import ApiError
from fairlead.api.kinds import Kind
from fairlead.client.client import Client

CONCURRENT_CLUSTERS = 8  # Clusters read in parallel: fast enough for hundreds.


class Unreachable(Exception):
    """Nothing is known about a cluster, so nothing in it counts as absent. The message says why."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster under the name that labels use for it."""

    name: str
    client: Client

    async def uid(self) -> str:
        """Return the identity of the cluster: the uid of its kube-system namespace."""
        try:
            uid = (await self.client.get(Namespace, "kube-system")).uid
        except (ApiError, OSError) as error:
            raise Unreachable(f"its identity cannot be read: {_message(error)}") from None
        if not uid:
            raise Unreachable("its namespace kube-system has no uid")
        return uid

    async def kinds(self) -> dict[tuple[str, str], Kind]:
        """Return the served kinds by group and kind, in the preferred version."""
        found: dict[tuple[str, str], Kind] = {}
        try:
            for served in await self.client.kinds():
                if "list" in served.verbs and "get" in served.verbs:
                    found.setdefault((served.kind.group, served.kind.kind), served.kind)
        except (ApiError, OSError) as error:
            raise Unreachable(f"its API resources cannot be read: {_message(error)}") from None
        return found


@dataclass(frozen=True, slots=True)
class Fleet:
    """The cluster with the copies, the clusters with their parents, and the clusters that no longer exist."""

    downstream: Cluster
    upstreams: Mapping[str, Cluster]
    retired: frozenset[str] = field(default_factory=frozenset)


def _message(error: BaseException) -> str:
    return str(error) or type(error).__name__
