"""The objects that a new server has, such as the namespace `default` and the Service `kubernetes`.

`objects.json` has them as a real server answers them. The objects of a kind are built when its table is first used, so
that they do not delay the start.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from ipaddress import IPv4Network
from typing import Any, Final

import msgspec

from fairlead.api.times import rfc3339
from fairlead.api.world import World
from fairlead.server.storage.store import Store
from fairlead.server.storage.stored import Object

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
MAX_SERVICE_PREFIX: Final = 30
SEED_UIDS: Final = 4
Table = tuple[str, str]  # group and plural
_METADATA_ORDER: Final = (  # of a real server's answers
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "labels", "annotations",
    "managedFields",
)  # fmt: skip


class InitialObjects:
    """The objects of one new server, by group and plural.

    Guarantees: the same object has the same uid whenever it is built, and whatever was built before.

    Parameters:
        world: the source of the creation time and of the uids.
        service_range: the range of cluster IPs. Its first address is that of the Service `kubernetes`.
        rbac: whether the server has the default roles and bindings.
    """

    def __init__(self, world: World, service_range: IPv4Network, *, rbac: bool) -> None:
        now = rfc3339(world.clock.now())
        self._placeholders = {
            b"$NOW": now.encode(),
            b"$TODAY": now[: len("2006-01-02")].encode(),
            b"$SERVICE_RANGE": str(service_range).encode(),
            b"$SERVICE_ADDRESS": str(service_range[1]).encode(),
        }
        self._now = now
        # Seeded worlds, and so the results of the demo, depend on how much randomness a start uses.
        self._seed = "".join(world.uid() for _ in range(SEED_UIDS))
        self._rbac = rbac

    def tables(self) -> Iterator[Table]:
        """Yield the group and plural of the kinds that have initial objects."""
        for key in _read_facts():
            group, _, plural = key.partition("/")
            if plural and (self._rbac or group != RBAC_GROUP):
                yield group, plural

    def build(self, group: str, plural: str) -> list[Object]:
        """Return the initial objects of a kind. They have resourceVersions in the order of a real server."""
        text: bytes | None = None
        if self._rbac or group != RBAC_GROUP:
            text = _read_facts().get(f"{group}/{plural}")
        if text is None:
            return []
        text = bytes(text)
        for placeholder, value in self._placeholders.items():
            text = text.replace(placeholder, value)
        facts = msgspec.json.decode(text)
        type_meta = {"apiVersion": facts["apiVersion"], "kind": facts["kind"]}
        return [
            {**type_meta, **item, "metadata": self._build_metadata(item["metadata"], f"{group}/{plural}", type_meta)}
            for item in facts["items"]
        ]

    def add_missing(self, store: Store) -> None:
        """Write the initial objects that a store does not have. Existing objects stay unchanged."""
        for group, plural in self.tables():
            table = store.table(group, plural)
            for obj in self.build(group, plural):
                metadata = obj["metadata"]
                if table.get(metadata.get("namespace", ""), metadata["name"]) is None:
                    store.put(table, obj)

    def _build_metadata(self, facts: Object, table: str, type_meta: Object) -> Object:
        key = "/".join((table, facts.get("namespace", ""), facts["name"]))
        entries = [self._build_entry(entry, type_meta["apiVersion"]) for entry in facts["managedFields"]]
        system = {"uid": self._derive_uid(key), "creationTimestamp": self._now, "managedFields": entries}
        metadata = {**facts, **system}
        return {name: metadata[name] for name in _METADATA_ORDER if name in metadata}

    def _build_entry(self, entry: list[Any], api_version: str) -> Object:
        manager, operation, index, subresource = entry
        built = {
            "manager": manager,
            "operation": operation,
            "apiVersion": api_version,
            "time": self._now,
            "fieldsType": "FieldsV1",
            "fieldsV1": _read_fields()[index],
        }
        return {**built, "subresource": subresource} if subresource else built

    def _derive_uid(self, key: str) -> str:
        """Return a version 4 UUID that depends only on this server and on `key`."""
        digest = hashlib.sha256(f"{self._seed}/{key}".encode()).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def parse_service_range(text: str) -> IPv4Network:
    """Return the range of cluster IPs. Raises ValueError if it is not an IPv4 network for at least four addresses."""
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"service range {text!r} is not an IPv4 network such as 10.0.0.0/24: {error}") from None
    if network.prefixlen > MAX_SERVICE_PREFIX:
        raise ValueError(f"service range {text} is too small: use a prefix of at most /{MAX_SERVICE_PREFIX}")
    return network


@cache
def _read_facts() -> dict[str, msgspec.Raw]:
    path = files("fairlead.server.initial_objects") / "objects.json"
    facts: dict[str, msgspec.Raw] = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    return facts


@cache
def _read_fields() -> list[Object]:
    fields: list[Object] = msgspec.json.decode(_read_facts()["fields"])
    return fields
