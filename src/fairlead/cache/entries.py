"""Cache entries: the JSON of an object as bytes, with the few fields that the cache itself reads.

The stored JSON has no apiVersion and kind (they are the same for all entries) and no managedFields of other field
managers. Both are cut out of the bytes, because to decode and encode the object would cost ten times as much.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fairlead.api import gojson
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object, as_integer

Transform = Callable[[Object], Mapping[str, Any]]
"""A function that the cache applies to each object before storing it, for example to drop large fields."""

_MANAGED_FIELDS = b'"managedFields":'
_ABSENT = msgspec.Raw(b"")


class CacheEntry(msgspec.Struct, gc=False):
    """The JSON of an object at one resourceVersion. `version` is 0 if the resourceVersion is not an integer."""

    raw: bytes
    uid: str
    version: int


class OwnerReference(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """One item of metadata.ownerReferences."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class _OwnersMetadata(msgspec.Struct, rename="camel", gc=False):
    owner_references: list[OwnerReference] = []


class _OwnersObject(msgspec.Struct, gc=False):
    metadata: _OwnersMetadata = msgspec.field(default_factory=_OwnersMetadata)  # a transform may have dropped it


_decode_owners = msgspec.json.Decoder(_OwnersObject).decode


def owner_references(entry: CacheEntry) -> list[OwnerReference]:
    """Return the ownerReferences of a cached object. Only they are decoded."""
    return _decode_owners(entry.raw).metadata.owner_references


class _HeadMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    managed_fields: msgspec.Raw = _ABSENT


class _Head(msgspec.Struct, gc=False):
    metadata: _HeadMetadata


class _ManagedFieldsEntry(msgspec.Struct, gc=False):
    manager: str = ""
    operation: str = ""


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_managed_fields_entry = msgspec.json.Decoder(_ManagedFieldsEntry).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class EntryCodec:
    """Converts the JSON of one kind to cache entries, and cache entries to objects.

    An entry keeps the managedFields of `field_managers` with the operation Apply and drops all others. With a
    `transform`, the entry stores the transformed object, with the name, uid and version of the original.
    """

    def __init__(
        self, kind: Kind, *, field_managers: frozenset[str] = frozenset(), transform: Transform | None = None
    ) -> None:
        self._type = {"apiVersion": kind.api_version, "kind": kind.kind}
        # Go writes kind first for built-in kinds, and apiVersion first for custom resources.
        api_version, name = gojson.dumps(kind.api_version), gojson.dumps(kind.kind)
        self._heads = (  # both have the same length
            b'{"kind":' + name + b',"apiVersion":' + api_version + b",",
            b'{"apiVersion":' + api_version + b',"kind":' + name + b",",
        )
        self._field_managers = field_managers
        self._manager_fields = tuple(b'"manager":' + gojson.dumps(name) for name in field_managers)
        self._transform = transform

    def encode(self, raw: bytes) -> tuple[str, str, str, CacheEntry]:
        """Return (namespace, name, resourceVersion, cache entry) of the object in `raw`. The namespace may be "".

        Raises msgspec.DecodeError if `raw` is not an object with a name, and ValueError if the transform failed.
        """
        meta = _decode_head(raw).metadata
        start = len(self._heads[0]) if raw.startswith(self._heads) else 1
        if meta.managed_fields is not _ABSENT:
            raw = self._strip_managed_fields(raw, start, bytes(meta.managed_fields))
        elif start > 1:
            raw = b"{" + raw[start:]
        if self._transform is not None:
            raw = self._apply_transform(raw, self._transform, meta)
        version = meta.resource_version
        return meta.namespace, meta.name, version, CacheEntry(raw, meta.uid, as_integer(version))

    def _apply_transform(self, raw: bytes, transform: Transform, meta: _HeadMetadata) -> bytes:
        try:
            return msgspec.json.encode(transform(self._decode(raw)))
        except Exception as error:
            object_name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            raise ValueError(
                f"the transform of {self._type['kind']} failed on {object_name} ({type(error).__name__}: {error}): fix "
                "the transform, nothing of this kind is cached until it accepts every object"
            ) from error

    def decode(self, entry: CacheEntry) -> Object:
        """Decode a cache entry to a new object, which the caller may change."""
        return self._decode(entry.raw)

    def _decode(self, raw: bytes) -> Object:
        obj = Object(self._type)
        obj.update(_decode(raw))
        obj.update(self._type)  # a metadata-only object says that its kind is PartialObjectMetadata
        return obj

    def _strip_managed_fields(self, raw: bytes, start: int, managed_fields: bytes) -> bytes:
        """Return the JSON in `raw[start:]` without the managedFields entries of other field managers."""
        managed_fields_start = raw.find(_MANAGED_FIELDS, start)
        end = managed_fields_start + len(_MANAGED_FIELDS) + len(managed_fields)
        # If metadata comes first, the first key of that name with that value is metadata.managedFields: nothing else
        # inside metadata has a list of objects under this key, and a string cannot hold an unescaped quote.
        if not raw.startswith(b'"metadata":{', start) or not raw.startswith(
            managed_fields, managed_fields_start + len(_MANAGED_FIELDS)
        ):
            return self._strip_managed_fields_slowly(raw)
        own_entries = self._select_own_entries(managed_fields)
        if own_entries:
            return b"".join(
                (b"{", raw[start:managed_fields_start], _MANAGED_FIELDS, b"[", b",".join(own_entries), b"]", raw[end:])
            )
        if raw.startswith(b",", end):
            end += 1
        elif raw.startswith(b",", managed_fields_start - 1):
            managed_fields_start -= 1
        return b"".join((b"{", raw[start:managed_fields_start], raw[end:]))

    def _strip_managed_fields_slowly(self, raw: bytes) -> bytes:
        decoded = _decode(raw)
        metadata = dict(decoded["metadata"])
        own_entries = self._select_own_entries(msgspec.json.encode(metadata.pop("managedFields")))
        if own_entries:
            metadata["managedFields"] = [_decode(entry) for entry in own_entries]
        return msgspec.json.encode({**decoded, "metadata": metadata})

    def _select_own_entries(self, managed_fields: bytes) -> list[bytes]:
        own_entries: list[bytes] = []
        if not self._field_managers or not any(field in managed_fields for field in self._manager_fields):
            return own_entries
        for raw in _decode_raw_items(managed_fields):
            entry = _decode_managed_fields_entry(raw)
            if entry.operation == "Apply" and entry.manager in self._field_managers:
                own_entries.append(bytes(raw))
        return own_entries
