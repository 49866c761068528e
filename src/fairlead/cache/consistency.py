"""Is the cache what the server is? Lists once more, at the very version that the cache is at, and compares."""

from fairlead.api.errors import ApiError
from fairlead.cache.entries import Entry
from fairlead.cache.indexes import Key
from fairlead.cache.informer import Informer
from fairlead.client.client import Client

# A version may be forgotten between looking and asking; a stream that is fed has a newer one at the next look.
_LOOKS = 3


async def differences(informer: Informer, client: Client) -> list[str]:
    """A line for each object that the stream told otherwise than the server has it at that version.

    Right at any moment, also while both change: a stream tells a kind's changes in their order, so what it has told up
    to a version is the state at that version. Own writes that are laid over it are left out. Costs a full list.
    """
    scope = informer.scope
    refusal = "it is not listed yet"
    for _ in range(_LOOKS if informer.resource_version else 0):
        version, told = informer.resource_version, dict(informer.store.items())
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
            refusal = f"the server cannot say what was there at version {version}: {error}"
            continue
        listed: dict[Key, Entry] = {}
        for raw in page.items:
            namespace, name, _, entry = informer.entries.read(raw)
            listed[namespace, name] = entry
        return [
            f"{scope} at version {version}: {'/'.join(filter(None, key))} {difference}"
            for key in sorted(told.keys() | listed.keys())
            if (difference := _difference(informer, told.get(key), listed.get(key)))
        ]
    return [f"{scope}: {refusal}"]


def _difference(informer: Informer, told: Entry | None, listed: Entry | None) -> str:
    if told is None:
        return "is on the server and was never told, or told to be gone"
    if listed is None:
        return "is not on the server and was not told to be gone"
    same = told.raw == listed.raw or informer.entries.object(told) == informer.entries.object(listed)
    return "" if same else f"was told as of version {told.version} and is as of {listed.version}, or with other fields"
