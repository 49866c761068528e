"""Compare the cache with a list from the server at the same resourceVersion."""

from fairlead.api.errors import ApiError
from fairlead.cache.entries import CacheEntry
from fairlead.cache.indexes import ObjectKey
from fairlead.cache.informer import Informer
from fairlead.client.client import Client

# The server may compact a version between the read of the cache and the list. A live watch has a newer version then.
_ATTEMPTS = 3


async def find_differences(informer: Informer, client: Client) -> list[str]:
    """Return one line for each object that differs between the cache and the server at the same resourceVersion.

    Guarantees: the result is correct also while objects change. A watch reports the changes of a kind in order, so the
    cache holds exactly the server's state at the version that the watch has reached.

    Does not guarantee: a check of own writes that the watch has not reported yet. The check lists all objects.
    """
    scope = informer.scope
    reason = "it is not listed yet"
    for _ in range(_ATTEMPTS if informer.resource_version else 0):
        version, cached = informer.resource_version, dict(informer.store.items())
        try:
            page = await client.list_raw(
                scope.kind,
                scope.namespace,
                labels=scope.labels,
                fields=scope.fields,
                resource_version=version,
                resource_version_match="Exact",
                metadata_only=scope.metadata_only,
            )
        except ApiError as error:
            reason = f"the server cannot list version {version}: {error}"
            continue
        listed: dict[ObjectKey, CacheEntry] = {}
        for raw in page.items:
            namespace, name, _, entry = informer.codec.encode(raw)
            listed[namespace, name] = entry
        return [
            f"{scope} at version {version}: {'/'.join(filter(None, key))} {difference}"
            for key in sorted(cached.keys() | listed.keys())
            if (difference := _describe_difference(informer, cached.get(key), listed.get(key)))
        ]
    return [f"{scope}: {reason}"]


def _describe_difference(informer: Informer, cached: CacheEntry | None, listed: CacheEntry | None) -> str:
    if cached is None:
        return "is on the server and not in the cache"
    if listed is None:
        return "is in the cache and not on the server"
    is_same = cached.raw == listed.raw or informer.codec.decode(cached) == informer.codec.decode(listed)
    return "" if is_same else f"is cached at version {cached.version} and is at {listed.version}, or has other fields"
