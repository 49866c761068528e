"""The clusters of a run: the downstream cluster with the copies, and the upstream clusters with the originals."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.api.builtin import Namespace
from fairlead.api.errors import ApiError
from fairlead.api.kinds import Kind
from fairlead.client.client import Client

CONCURRENT_CLUSTERS = 8  # Clusters read in parallel: fast enough for hundreds.


class Unreachable(Exception):
    """A cluster could not be read, so no object in it counts as absent. The message names the reason."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A client for one cluster, and the name of the cluster in the labels of copies."""

    name: str
    client: Client

    async def uid(self) -> str:
        """Return the uid of the cluster's kube-system namespace, which identifies the cluster."""
        try:
            uid = (await self.client.get(Namespace, "kube-system")).uid
        except (ApiError, OSError) as error:
            raise Unreachable(f"its identity cannot be read: {_format_error(error)}") from None
        if not uid:
            raise Unreachable("its namespace kube-system has no uid")
        return uid

    async def kinds(self) -> dict[tuple[str, str], Kind]:
        """Return the kinds that the cluster serves, in the preferred version, by (group, kind)."""
        kinds: dict[tuple[str, str], Kind] = {}
        try:
            for served_kind in await self.client.kinds():
                if "list" in served_kind.verbs and "get" in served_kind.verbs:
                    kinds.setdefault((served_kind.kind.group, served_kind.kind.kind), served_kind.kind)
        except (ApiError, OSError) as error:
            raise Unreachable(f"its API resources cannot be read: {_format_error(error)}") from None
        return kinds


@dataclass(frozen=True, slots=True)
class Fleet:
    """The downstream cluster (copies), the upstream clusters (originals) and the names of retired clusters."""

    downstream: Cluster
    upstreams: Mapping[str, Cluster]
    retired: frozenset[str] = field(default_factory=frozenset)


def _format_error(error: BaseException) -> str:
    return str(error) or type(error).__name__
