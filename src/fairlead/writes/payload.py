"""A payload for apply: from scratch, exactly the fields that are owned, the same bytes for the same intent."""

import base64
from collections.abc import Mapping
from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.kinds import kind as kind_of
from fairlead.api.objects import Object
from fairlead.writes.errors import ReadValueInPayload
from fairlead.writes.values import finite, scalar, text
from fairlead.writes.view import ListView, MapView
from fairlead.writes.writer import METADATA_ONLY, identified, told

# Only a server gives these, so a payload that has one was read, not built.
SERVERS = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")


def kind_in(payload: Mapping[str, Any]) -> Kind:
    """The kind that a payload says it is of. Raises where it has no frame to say so, or to be named by."""
    if not isinstance(payload, Mapping):
        raise ValueError(f"a payload is a map with apiVersion, kind and metadata, not of type {type(payload).__name__}")
    metadata = payload.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise ValueError(f"the metadata of a {payload.get('kind')} is no map: give it its name there")
    for field in ("name", "namespace"):
        text(metadata.get(field) or "", f"metadata.{field} of a {payload.get('kind')}")
    return kind_of(str(payload.get("apiVersion") or ""), str(payload.get("kind") or ""))


def scratch(kind: Kind, payload: Mapping[str, Any], owner: Object | None = None) -> dict[str, Any]:
    """The payload as it is sent: plain, without nulls, a Secret's stringData as data, the owner as controller.

    Takes the owner's namespace where none is given. The owner reference is left out where none is possible: to an
    owner in another namespace. Raises OnlyRead when the payload carries what only a server can have given it, or a
    view that a deciding function was handed.
    """
    metadata = dict(payload.get("metadata") or {})
    if kind.namespaced and not metadata.get("namespace") and owner is not None and owner.namespace:
        metadata["namespace"] = owner.namespace
    what = told(kind, str(metadata.get("name")), metadata.get("namespace"))
    if not metadata.get("name"):  # also with generateName: a lost answer could not be looked up, and would make two
        raise ValueError(f"a {kind.kind} needs a name to be applied, always the same for the same purpose")
    if kind.namespaced and not metadata.get("namespace"):
        raise ValueError(f"{what} needs a namespace to be applied: it has no owner in one to take it from")
    for field in SERVERS:
        if metadata.get(field) is not None:
            raise ReadValueInPayload(what, f"metadata.{field}")
    if owner is not None:
        if owner.kind == METADATA_ONLY:
            raise ValueError(f"{what}: the owner {owner.name} was read without its kind: read it whole")
        identified(kind_of(owner.api_version, owner.kind), owner)
    if owner is not None and can_own(owner, metadata.get("namespace") if kind.namespaced else None):
        given = metadata.get("ownerReferences") or ()
        others = [ref for ref in given if not (isinstance(ref, Mapping) and ref.get("uid") == owner.uid)]
        metadata["ownerReferences"] = [*others, controller_reference(owner)]
    with finite(what):
        body: dict[str, Any] = _plain({**payload, "metadata": metadata}, what, "")
    body.pop("status", None)  # an apply to the main endpoint would drop it anyway
    if kind.key == ("v1", "Secret") and "stringData" in body:
        # stored as data and owned as stringData, a key that is left out later would stay for ever
        for part in ("data", "stringData"):
            if not isinstance(body.get(part, {}), dict):
                raise ValueError(f"{what}: {part} is no map: give it a key for each value")
        given = {key: text(value, f"{what}: stringData.{key}") for key, value in body.pop("stringData").items()}
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in given.items()}
        body["data"] = {**body.get("data", {}), **encoded}
    return body


def controller_reference(owner: Object) -> dict[str, Any]:
    """The owner reference that makes `owner` the controller, in the form that kubectl's own controllers use."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def can_own(owner: Object, namespace: str | None) -> bool:
    """Whether an object in that namespace (None: in none) may name `owner` as its owner."""
    return owner.namespace is None or owner.namespace == namespace


def _plain(value: Any, what: str, path: str) -> Any:
    if isinstance(value, MapView | ListView):
        raise ReadValueInPayload(what, path)
    if isinstance(value, Mapping):
        if path and isinstance(value, Object) and value.uid:
            raise ReadValueInPayload(what, path)
        for key in value:
            text(key, f"{what}: the key {key!r} of {path or 'it'}")
        below = {key: _plain(item, what, f"{path}.{key}" if path else str(key)) for key, item in value.items()}
        return {key: item for key, item in below.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item, what, f"{path}[{n}]") for n, item in enumerate(value)]
    said = scalar(value, f"{what}: {path}")
    return _plain(said, what, path) if isinstance(said, dict | list) else said
