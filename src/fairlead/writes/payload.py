"""Build the payload of an apply from the dict that a controller passes."""

import base64
from collections.abc import Mapping
from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.kinds import kind as kind_of
from fairlead.api.objects import Object
from fairlead.writes.errors import ReadValueInPayload
from fairlead.writes.json_values import reject_cycles, require_text, to_json
from fairlead.writes.tracked import TrackedList, TrackedMap
from fairlead.writes.writer import METADATA_ONLY, describe_object, require_uid

# Only a server sets these fields of metadata, so a payload that has one was read from a server.
SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")


def kind_of_payload(payload: Mapping[str, Any]) -> Kind:
    """Return the kind of a payload. Raise ValueError if the payload is not a map or has malformed metadata."""
    if not isinstance(payload, Mapping):
        raise ValueError(
            f"a payload must be a map with apiVersion, kind and metadata, but is of type {type(payload).__name__}"
        )
    metadata = payload.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise ValueError(f"the metadata of a {payload.get('kind')} must be a map with at least a name")
    for field in ("name", "namespace"):
        require_text(metadata.get(field) or "", f"metadata.{field} of a {payload.get('kind')}")
    return kind_of(str(payload.get("apiVersion") or ""), str(payload.get("kind") or ""))


def build_payload(kind: Kind, payload: Mapping[str, Any], owner: Object | None = None) -> dict[str, Any]:
    """Return the payload to send: a copy without nulls, with stringData moved to data and the owner as controller.

    A payload without a namespace gets the owner's. It gets no owner reference to an owner in another namespace, because
    Kubernetes does not allow that.

    Raises:
        ReadValueInPayload: the payload contains a value that only a server can have set, or a part of a draft.
        ValueError: the name or namespace is missing, or JSON cannot represent a value.
    """
    metadata = dict(payload.get("metadata") or {})
    if kind.namespaced and not metadata.get("namespace") and owner is not None and owner.namespace:
        metadata["namespace"] = owner.namespace
    target = describe_object(kind, str(metadata.get("name")), metadata.get("namespace"))
    if not metadata.get("name"):
        # generateName does not help: after a lost answer nobody could find the object, and a retry would create two.
        raise ValueError(f"a {kind.kind} needs a name to be applied, always the same for the same purpose")
    if kind.namespaced and not metadata.get("namespace"):
        raise ValueError(f"{target} needs a namespace: set metadata.namespace, or pass an owner that has one")
    for field in SERVER_FIELDS:
        if metadata.get(field) is not None:
            raise ReadValueInPayload(target, f"metadata.{field}")
    if owner is not None:
        if owner.kind == METADATA_ONLY:
            raise ValueError(f"{target}: only the metadata of the owner {owner.name} was read: read the whole object")
        require_uid(kind_of(owner.api_version, owner.kind), owner)
    if owner is not None and can_own(owner, metadata.get("namespace") if kind.namespaced else None):
        references = metadata.get("ownerReferences") or ()
        other_references = [ref for ref in references if not (isinstance(ref, Mapping) and ref.get("uid") == owner.uid)]
        metadata["ownerReferences"] = [*other_references, controller_reference(owner)]
    with reject_cycles(target):
        body: dict[str, Any] = _to_plain({**payload, "metadata": metadata}, target, "")
    body.pop("status", None)  # The main endpoint would drop it.
    if kind.key == ("v1", "Secret") and "stringData" in body:
        # The server stores stringData as data but records ownership of stringData. A key that a later payload omits
        # would therefore never be removed.
        for field_name in ("data", "stringData"):
            if not isinstance(body.get(field_name, {}), dict):
                raise ValueError(f"{target}: {field_name} must be a map with one key per value")
        texts = {
            key: require_text(value, f"{target}: stringData.{key}") for key, value in body.pop("stringData").items()
        }
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        body["data"] = {**body.get("data", {}), **encoded}
    return body


def controller_reference(owner: Object) -> dict[str, Any]:
    """Return an owner reference with `controller: true` for `owner`, in the form that built-in controllers use."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def can_own(owner: Object, namespace: str | None) -> bool:
    """Return whether an object in that namespace (None: a cluster-scoped object) may have `owner` as its owner."""
    return owner.namespace is None or owner.namespace == namespace


def _to_plain(value: Any, target: str, path: str) -> Any:
    """Return a copy of dicts, lists and scalars, without the null values of maps."""
    if isinstance(value, TrackedMap | TrackedList):
        raise ReadValueInPayload(target, path)
    if isinstance(value, Mapping):
        if path and isinstance(value, Object) and value.uid:
            raise ReadValueInPayload(target, path)
        for key in value:
            require_text(key, f"{target}: the key {key!r} of {path or 'the payload'}")
        plain = {key: _to_plain(item, target, f"{path}.{key}" if path else str(key)) for key, item in value.items()}
        return {key: item for key, item in plain.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_to_plain(item, target, f"{path}[{index}]") for index, item in enumerate(value)]
    converted = to_json(value, f"{target}: {path}")
    return _to_plain(converted, target, path) if isinstance(converted, dict | list) else converted
