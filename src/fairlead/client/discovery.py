"""Discovery: which kinds a server serves, under which plural, in which scope."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fairlead.api.errors import ApiError, NotFound
from fairlead.api.kinds import Kind

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

Fetch = Callable[[str, str], Awaitable[Any]]  # (path, accept) -> decoded JSON, or raises ApiError


class NotServed(ApiError):
    """The server does not serve this kind (yet): its CRD is missing, or the version is another one.

    Not a NotFound: that one says something about an object.
    """

    def __init__(self, kind: Kind) -> None:
        message = (
            f"the server serves no {kind.kind} in {kind.api_version}: install its CustomResourceDefinition, "
            f"or see `kubectl api-resources` for the version it does serve"
        )
        super().__init__({"message": message, "code": 404})
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind as the server serves it."""

    kind: Kind
    verbs: frozenset[str]
    subresources: frozenset[str]
    short_names: frozenset[str] = frozenset()


class Discovery:
    """What one server serves, asked once and kept; a kind not seen before makes it ask again.

    A kind that was deleted or moved stays until `forget`.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._served: dict[tuple[str, str], ServedKind] = {}
        self._lock = asyncio.Lock()

    async def find(self, kind: Kind) -> ServedKind:
        """The kind as served. Raises NotServed, or what the request raised."""
        if (served := self._served.get(kind.key)) is None:
            async with self._lock:  # one question, however many ask
                if (served := self._served.get(kind.key)) is None:
                    served = await self._discover(kind)
        return served

    def forget(self, kind: Kind) -> None:
        """Ask again at the next `find`."""
        self._served.pop(kind.key, None)

    async def list_all(self) -> list[ServedKind]:
        """Every kind, asked anew; of each group the version that the server prefers comes first."""
        found: list[ServedKind] = []
        for path in ("/api", "/apis"):
            answer = await self._fetch(path, AGGREGATED)
            if answer.get("kind") == "APIGroupDiscoveryList":
                found += parse_aggregated(answer)
                continue
            for group in answer.get("groups") or [{"versions": [{"version": v} for v in answer.get("versions") or ()]}]:
                for version in group.get("versions") or ():
                    of = Kind(group.get("name") or "", version["version"], "", "")
                    found += parse_resource_list(of, await self._fetch(f"{path}/{of.api_version}", "application/json"))
        return found

    async def _discover(self, kind: Kind) -> ServedKind:
        answer = await self._fetch("/apis" if kind.group else "/api", AGGREGATED)
        if answer.get("kind") == "APIGroupDiscoveryList":
            self._served.update((served.kind.key, served) for served in parse_aggregated(answer))
        if kind.key not in self._served:
            # An older server, an aggregated API that was not reachable, or a CRD too fresh for the aggregate.
            path = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            try:
                answer = await self._fetch(path, "application/json")
            except NotFound:
                raise NotServed(kind) from None
            self._served.update((served.kind.key, served) for served in parse_resource_list(kind, answer))
        try:
            return self._served[kind.key]
        except KeyError:
            raise NotServed(kind) from None


def parse_aggregated(answer: dict[str, Any]) -> Iterator[ServedKind]:
    """Every kind in an APIGroupDiscoveryList."""
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
                short = frozenset(resource.get("shortNames") or ())
                yield ServedKind(kind, frozenset(resource.get("verbs") or ()), subresources, short)


def parse_resource_list(asked: Kind, answer: dict[str, Any]) -> Iterator[ServedKind]:
    """Every kind in the APIResourceList of `asked`'s group and version."""
    resources = answer.get("resources") or ()
    subresources: dict[str, set[str]] = {}
    for resource in resources:
        plural, _, sub = resource["name"].partition("/")
        if sub:
            subresources.setdefault(plural, set()).add(sub)
    for resource in resources:
        plural = resource["name"]
        if "/" not in plural:
            kind = Kind(asked.group, asked.version, resource["kind"], plural, bool(resource.get("namespaced")))
            verbs, short = frozenset(resource.get("verbs") or ()), frozenset(resource.get("shortNames") or ())
            yield ServedKind(kind, verbs, frozenset(subresources.get(plural, ())), short)
