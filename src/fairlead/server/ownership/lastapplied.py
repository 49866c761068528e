"""kubectl's last-applied annotation: the manager "kubectl" may take over what it lists, and keeps it true."""

import json
from typing import Any, Final

from fairlead.api import gojson
from fairlead.api.fields import FieldSet
from fairlead.api.fields.tries import LEAF
from fairlead.server.ownership.comparing import compare
from fairlead.server.ownership.conformance import conforms
from fairlead.server.ownership.extraction import applied
from fairlead.server.ownership.shapes import Shape

MANAGER: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS_LIMIT: Final = 256 * 1024  # of a real server's validation: beyond it the annotation is dropped


def allowed(live: dict[str, Any], api_version: str, shape: Shape) -> FieldSet | None:
    """The fields that client-side apply set and that still are as it set them; None where that cannot be told."""
    try:
        last = json.loads(_annotations(live).get(ANNOTATION) or "")
    except ValueError:
        return None
    if not isinstance(last, dict) or not last.get("kind") or last.get("apiVersion") != api_version:
        return None
    if not conforms(shape, live, repeats=False) or not conforms(shape, last, repeats=False):
        return None
    changes = compare(shape, last, live)
    fields = FieldSet(applied(shape, last) or LEAF)
    return fields - FieldSet(changes.modified) - FieldSet(changes.added) - FieldSet(changes.removed)


def synced(obj: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`obj` with its last-applied annotation, if it has one, saying `config`; itself where it does."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    metadata = dict(config.get("metadata") or {})
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != ANNOTATION}
        if not metadata["annotations"]:
            del metadata["annotations"]
    text = gojson.dumps({**config, "metadata": metadata}).decode() + "\n"
    new = {**annotations, ANNOTATION: text}
    if sum([len(k.encode()) + len(v.encode()) for k, v in new.items()]) > _ANNOTATIONS_LIMIT:
        del new[ANNOTATION]
    if new == annotations:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": new}}


def _annotations(obj: dict[str, Any]) -> dict[str, str]:
    metadata = obj.get("metadata") or {}
    return metadata.get("annotations") or {}
