"""The clusters of a run: one downstream, the upstreams by name, and those that were named as retired."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.api.builtin import Namespace
from fairlead.api.errors import ApiError
from fairlead.api.kinds import Kind
from fairlead.client.client import Client

AT_ONCE = 8  # clusters asked side by side: fast enough for hundreds, unnoticed by each


class Unreachable(Exception):
    """Nothing can be said about a cluster, least of all that something is not there. The message says why."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server by the name that labels give it."""

    name: str
    client: Client

    async def uid(self) -> str:
        """Which cluster this is: the uid of its kube-system namespace, which lives and dies with it."""
        try:
            uid = (await self.client.get(Namespace, "kube-system")).uid
        except (ApiError, OSError) as error:
            raise Unreachable(f"it does not say which cluster it is: {_said(error)}") from None
        if not uid:
            raise Unreachable("its namespace kube-system has no uid")
        return uid

    async def kinds(self) -> dict[tuple[str, str], Kind]:
        """What it serves, by group and kind, in the version that it prefers."""
        found: dict[tuple[str, str], Kind] = {}
        try:
            for served in await self.client.kinds():
                if "list" in served.verbs and "get" in served.verbs:
                    found.setdefault((served.kind.group, served.kind.kind), served.kind)
        except (ApiError, OSError) as error:
            raise Unreachable(f"it does not say what it serves: {_said(error)}") from None
        return found


@dataclass(frozen=True, slots=True)
class Fleet:
    """Where copies are (downstream), where their parents are (upstreams), and which upstreams are no more."""

    downstream: Cluster
    upstreams: Mapping[str, Cluster]
    retired: frozenset[str] = field(default_factory=frozenset)


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
