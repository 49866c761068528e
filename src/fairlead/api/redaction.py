"""Hides the values of Secrets in everything that is printed. Their keys stay."""

from collections.abc import Mapping
from typing import Any

REDACTED = "<redacted>"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def redact(value: Any) -> Any:
    """Return the value with the values of Secrets replaced. Their keys stay."""
    if isinstance(value, Mapping):
        is_secret = value.get("kind") == "Secret"
        return {key: redact_field(key, item) if is_secret else redact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return value


def redact_field(name: str, value: Any) -> Any:
    """Return a top-level field of a Secret without its values."""
    if name in ("data", "stringData"):
        return dict.fromkeys(value, REDACTED) if isinstance(value, Mapping) else REDACTED
    return _redact_last_applied(value) if name == "metadata" else redact(value)


def _redact_last_applied(metadata: Any) -> Any:
    # kubectl stores a copy of the applied object, including its data, in an annotation.
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("annotations"), Mapping):
        return metadata
    annotations = dict(metadata["annotations"])
    if _LAST_APPLIED in annotations:
        annotations[_LAST_APPLIED] = REDACTED
    return {**metadata, "annotations": annotations}
