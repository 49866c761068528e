"""One object as it is kept: its JSON, and the few fields that the cache itself looks at.

What is kept of the JSON is everything but the type (the kind is known) and other managers' managedFields. Both are cut
out as bytes: decoding and encoding again would cost ten times as much.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fairlead.api import gojson
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object, as_integer

Transform = Callable[[Object], Mapping[str, Any]]

_MANAGED = b'"managedFields":'
_NOTHING = msgspec.Raw(b"")


class Entry(msgspec.Struct, gc=False):
    """An object at one version. `version` is 0 where the server's versions are not integers."""

    raw: bytes
    uid: str
    version: int


class OwnerReference(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Who owns an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class _Owned(msgspec.Struct, rename="camel", gc=False):
    owner_references: list[OwnerReference] = []


class _Owning(msgspec.Struct, gc=False):
    metadata: _Owned = msgspec.field(default_factory=_Owned)  # a transform may have left it out


_decode_owners = msgspec.json.Decoder(_Owning).decode


def owner_references(entry: Entry) -> list[OwnerReference]:
    """Who owns it, without decoding the rest."""
    return _decode_owners(entry.raw).metadata.owner_references


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    managed_fields: msgspec.Raw = _NOTHING


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


class _Manager(msgspec.Struct, gc=False):
    manager: str = ""
    operation: str = ""


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_manager = msgspec.json.Decoder(_Manager).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Entries:
    """Turns JSON of one kind into entries, and entries into objects.

    Of managedFields it keeps the Apply entries of `field_managers`. A `transform` is given each object before it is
    kept; what it answers is kept, under the name, uid and version that the object had.
    """

    def __init__(
        self, kind: Kind, *, field_managers: frozenset[str] = frozenset(), transform: Transform | None = None
    ) -> None:
        self._type = {"apiVersion": kind.api_version, "kind": kind.kind}
        # As Go writes it for built-in kinds, and as it writes a map for custom ones.
        api_version, name = gojson.dumps(kind.api_version), gojson.dumps(kind.kind)
        self._heads = (  # as long as each other
            b'{"kind":' + name + b',"apiVersion":' + api_version + b",",
            b'{"apiVersion":' + api_version + b',"kind":' + name + b",",
        )
        self._field_managers = field_managers
        self._named = tuple(b'"manager":' + gojson.dumps(name) for name in field_managers)
        self._transform = transform

    def read(self, raw: bytes) -> tuple[str, str, str, Entry]:
        """Namespace ("" for none), name and resourceVersion of the object in `raw`, and its entry.

        Raises msgspec.DecodeError when it is not an object with a name.
        """
        meta = _decode_head(raw).metadata
        start = len(self._heads[0]) if raw.startswith(self._heads) else 1
        if meta.managed_fields is not _NOTHING:
            raw = self._without_managed(raw, start, bytes(meta.managed_fields))
        elif start > 1:
            raw = b"{" + raw[start:]
        if self._transform is not None:
            raw = self._transformed(raw, self._transform, meta)
        version = meta.resource_version
        return meta.namespace, meta.name, version, Entry(raw, meta.uid, as_integer(version))

    def _transformed(self, raw: bytes, transform: Transform, meta: _Meta) -> bytes:
        try:
            return msgspec.json.encode(transform(self._decoded(raw)))
        except Exception as error:
            where = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            raise ValueError(
                f"the transform of {self._type['kind']} failed on {where}, and nothing is cached until it does not: "
                f"{type(error).__name__}: {error}"
            ) from error

    def object(self, entry: Entry) -> Object:
        """The object, decoded afresh: the caller may do with it what it likes."""
        return self._decoded(entry.raw)

    def _decoded(self, raw: bytes) -> Object:
        decoded = Object(self._type)
        decoded.update(_decode(raw))
        decoded.update(self._type)  # where only metadata was asked for, the server calls it PartialObjectMetadata
        return decoded

    def _without_managed(self, raw: bytes, start: int, managed: bytes) -> bytes:
        """`raw` from `start` on, without others' managedFields."""
        cut = raw.find(_MANAGED, start)
        end = cut + len(_MANAGED) + len(managed)
        # Where metadata comes first, the first key of that name with that value is the one: inside metadata nothing
        # else holds a list of objects under it, and text cannot hold an unescaped quote.
        if not raw.startswith(b'"metadata":{', start) or not raw.startswith(managed, cut + len(_MANAGED)):
            return self._without_managed_slowly(raw)
        own = self._own(managed)
        if own:
            return b"".join((b"{", raw[start:cut], _MANAGED, b"[", b",".join(own), b"]", raw[end:]))
        if raw.startswith(b",", end):
            end += 1
        elif raw.startswith(b",", cut - 1):
            cut -= 1
        return b"".join((b"{", raw[start:cut], raw[end:]))

    def _without_managed_slowly(self, raw: bytes) -> bytes:
        decoded = _decode(raw)
        metadata = dict(decoded["metadata"])
        own = self._own(msgspec.json.encode(metadata.pop("managedFields")))
        if own:
            metadata["managedFields"] = [_decode(entry) for entry in own]
        return msgspec.json.encode({**decoded, "metadata": metadata})

    def _own(self, managed: bytes) -> list[bytes]:
        own: list[bytes] = []
        if not self._field_managers or not any(name in managed for name in self._named):
            return own
        for entry in _decode_raws(managed):
            manager = _decode_manager(entry)
            if manager.operation == "Apply" and manager.manager in self._field_managers:
                own.append(bytes(entry))
        return own
