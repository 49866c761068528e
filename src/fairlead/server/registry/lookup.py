"""The registry: lookup of the kinds that are served now, both built-in and of CustomResourceDefinitions."""

from collections.abc import Iterable, Iterator

from fairlead.server.registry.resource import Resource


class Registry:
    """The served Resources by group, version and plural.

    A Resource is replaced and never changed, so that each request sees one consistent set of rules.
    """

    def __init__(self, builtin: Iterable[Resource]) -> None:
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._storage: dict[tuple[str, str], Resource] = {}
        self._builtin_versions: dict[str, list[str]] = {}
        for resource in builtin:
            self._served[resource.group, resource.version, resource.plural] = resource
            self._storage.setdefault((resource.group, resource.plural), resource)
            versions = self._builtin_versions.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._served.get((group, version, plural))

    def storage(self, group: str, plural: str) -> Resource | None:
        """Return the Resource of a kind at its storage version, or None if the kind is not served."""
        return self._storage.get((group, plural))

    def serves(self, group: str, version: str) -> bool:
        return version in self._builtin_versions.get(group, ()) or any(
            r.custom and r.group == group and r.version == version for r in self._served.values()
        )

    def is_builtin_group(self, group: str) -> bool:
        return group in self._builtin_versions

    def equivalents(self, resource: Resource) -> Iterator[Resource]:
        """Yield the other served Resources of the same objects: other versions of the kind, or its other group."""
        storage = resource.storage or resource
        for other in self._served.values():
            if other is not resource and (other.storage or other) is storage:
                yield other

    def served(self) -> Iterator[Resource]:
        yield from self._served.values()

    def custom(self) -> Iterator[Resource]:
        return (resource for resource in self._served.values() if resource.custom)

    def install(self, group: str, plural: str, resources: Iterable[Resource], storage: Resource) -> None:
        """Serve a custom kind by `resources`, one per version, which replace those that the kind had before."""
        self.remove(group, plural)
        for resource in resources:
            self._served[group, resource.version, plural] = resource
        self._storage[group, plural] = storage

    def remove(self, group: str, plural: str) -> None:
        for key in [k for k in self._served if k[0] == group and k[2] == plural]:
            del self._served[key]
        self._storage.pop((group, plural), None)
