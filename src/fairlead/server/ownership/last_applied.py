"""The last-applied annotation of `kubectl apply`.

When the manager "kubectl" switches to server-side apply, it takes over the fields in the annotation and keeps the
annotation up to date.
"""

import json
from typing import Any, Final

from fairlead.api import gojson
from fairlead.api.fields import FieldSet
from fairlead.api.fields.tries import LEAF
from fairlead.server.ownership.comparison import compare
from fairlead.server.ownership.conformance import conforms
from fairlead.server.ownership.field_extraction import extract_applied_fields
from fairlead.server.ownership.merge_schema import MergeSchema

MANAGER: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS_LIMIT: Final = 256 * 1024  # the limit of validation: the annotation is dropped if it is exceeded


def find_unchanged_fields(live: dict[str, Any], api_version: str, schema: MergeSchema) -> FieldSet | None:
    """Return the fields that client-side apply set and that still have the applied values, or None if unknown."""
    try:
        last = json.loads(_get_annotations(live).get(ANNOTATION) or "")
    except ValueError:
        return None
    if not isinstance(last, dict) or not last.get("kind") or last.get("apiVersion") != api_version:
        return None
    if not conforms(schema, live, allow_duplicates=False) or not conforms(schema, last, allow_duplicates=False):
        return None
    changes = compare(schema, last, live)
    fields = FieldSet(extract_applied_fields(schema, last) or LEAF)
    return fields - FieldSet(changes.modified) - FieldSet(changes.added) - FieldSet(changes.removed)


def update_annotation(obj: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return `obj` with `config` in its last-applied annotation, or `obj` itself if it has no such annotation."""
    annotations = _get_annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    metadata = dict(config.get("metadata") or {})
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != ANNOTATION}
        if not metadata["annotations"]:
            del metadata["annotations"]
    annotation = gojson.dumps({**config, "metadata": metadata}).decode() + "\n"
    new = {**annotations, ANNOTATION: annotation}
    if sum([len(k.encode()) + len(v.encode()) for k, v in new.items()]) > _ANNOTATIONS_LIMIT:
        del new[ANNOTATION]
    if new == annotations:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": new}}


def _get_annotations(obj: dict[str, Any]) -> dict[str, str]:
    metadata = obj.get("metadata") or {}
    return metadata.get("annotations") or {}
