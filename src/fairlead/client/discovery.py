"""Discovery: ask an API server for the kinds that it serves, with their plural and scope."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fairlead.api.errors import ApiError, NotFound
from fairlead.api.kinds import Kind

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

Fetch = Callable[[str, str], Awaitable[Any]]  # (path, accept) -> decoded JSON, or raises ApiError


class NotServed(ApiError):
    """The server does not serve the kind: the CRD is missing, or the server serves another version of the kind.

    NotServed is not a subclass of NotFound, which means that one object does not exist.
    """

    def __init__(self, kind: Kind) -> None:
        message = (
            f"the server does not serve {kind.kind} in {kind.api_version}: install its CustomResourceDefinition, "
            f"or see `kubectl api-resources` for the version that it serves"
        )
        super().__init__({"message": message, "code": 404})
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind with the verbs and subresources that the server's discovery lists."""

    kind: Kind
    verbs: frozenset[str]
    subresources: frozenset[str]
    short_names: frozenset[str] = frozenset()


class Discovery:
    """The kinds that one API server serves, cached. A kind that is not cached causes a request to the server.

    A kind that the server no longer serves stays cached until `forget` is called.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._served: dict[tuple[str, str], ServedKind] = {}
        self._lock = asyncio.Lock()

    async def find(self, kind: Kind) -> ServedKind:
        """Return the kind with its verbs and subresources. Raises NotServed, or the error of the discovery request."""
        if (served_kind := self._served.get(kind.key)) is None:
            async with self._lock:  # one request, also for many concurrent callers
                if (served_kind := self._served.get(kind.key)) is None:
                    served_kind = await self._discover(kind)
        return served_kind

    def forget(self, kind: Kind) -> None:
        """Remove the kind from the cache, so that the next `find` asks the server again."""
        self._served.pop(kind.key, None)

    def list_kinds_of_others(self, kind: Kind) -> set[str]:
        """Return `<kind>List` of every other kind that is known in the group and version."""
        other_kinds = (served_kind.kind for served_kind in self._served.values() if served_kind.kind.key != kind.key)
        return {f"{other.kind}List" for other in other_kinds if other.api_version == kind.api_version}

    async def list_all(self) -> list[ServedKind]:
        """Ask the server for every kind, without the cache. The preferred version of a group comes first."""
        kinds: list[ServedKind] = []
        for path in ("/api", "/apis"):
            answer = await self._fetch(path, AGGREGATED)
            if answer.get("kind") == "APIGroupDiscoveryList":
                kinds += parse_aggregated(answer)
                continue
            for group in answer.get("groups") or [{"versions": [{"version": v} for v in answer.get("versions") or ()]}]:
                for version in group.get("versions") or ():
                    group_version = Kind(group.get("name") or "", version["version"], "", "")
                    kinds += parse_resource_list(
                        group_version, await self._fetch(f"{path}/{group_version.api_version}", "application/json")
                    )
        return kinds

    async def _discover(self, kind: Kind) -> ServedKind:
        answer = await self._fetch("/apis" if kind.group else "/api", AGGREGATED)
        if answer.get("kind") == "APIGroupDiscoveryList":
            self._served.update((served_kind.kind.key, served_kind) for served_kind in parse_aggregated(answer))
        if kind.key not in self._served:
            # It is an older server, an unreachable aggregated API, or a CRD that the aggregate does not have yet.
            path = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            try:
                answer = await self._fetch(path, "application/json")
            except NotFound:
                raise NotServed(kind) from None
            self._served.update(
                (served_kind.kind.key, served_kind) for served_kind in parse_resource_list(kind, answer)
            )
        try:
            return self._served[kind.key]
        except KeyError:
            raise NotServed(kind) from None


def parse_aggregated(answer: dict[str, Any]) -> Iterator[ServedKind]:
    """Yield every kind in an APIGroupDiscoveryList."""
    for group in answer.get("items") or ():
        for version in group.get("versions") or ():
            for resource in version.get("resources") or ():
                kind = Kind(
                    group.get("metadata", {}).get("name") or "",  # the core group has no name
                    version["version"],
                    (resource.get("responseKind") or {}).get("kind") or "",
                    resource["resource"],
                    resource.get("scope") == "Namespaced",
                )
                subresources = frozenset(sub["subresource"] for sub in resource.get("subresources") or ())
                short_names = frozenset(resource.get("shortNames") or ())
                yield ServedKind(kind, frozenset(resource.get("verbs") or ()), subresources, short_names)


def parse_resource_list(group_version: Kind, answer: dict[str, Any]) -> Iterator[ServedKind]:
    """Yield every kind in the APIResourceList of one group and version."""
    resources = answer.get("resources") or ()
    subresources: dict[str, set[str]] = {}
    for resource in resources:
        plural, _, sub = resource["name"].partition("/")
        if sub:
            subresources.setdefault(plural, set()).add(sub)
    for resource in resources:
        plural = resource["name"]
        if "/" not in plural:
            kind = Kind(
                group_version.group, group_version.version, resource["kind"], plural, bool(resource.get("namespaced"))
            )
            verbs, short_names = frozenset(resource.get("verbs") or ()), frozenset(resource.get("shortNames") or ())
            yield ServedKind(kind, verbs, frozenset(subresources.get(plural, ())), short_names)
