"""Hides the values of Secrets in everything that is printed. Their keys stay."""

import base64
import binascii
import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

REDACTED = "<redacted>"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def redact(value: Any) -> Any:
    """Return the value with the values of Secrets replaced. Their keys stay."""
    if isinstance(value, Mapping):
        match value.get("kind"):
            case "Secret":
                return _redact_secret(value)
            case "SecretList" if isinstance(value.get("items"), list):  # Its items have no kind.
                return {**value, "items": [_redact_secret(item) for item in value["items"]]}
        return {key: redact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return value


def _redact_secret(secret: Any) -> Any:
    return {key: redact_field(key, item) for key, item in secret.items()} if isinstance(secret, Mapping) else REDACTED


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


def redact_message(message: Any, written_object: Any) -> Any:
    """Return the server's answer without the values of a Secret that was sent: a server quotes values that it rejects.

    `written_object` is the body of the request: an object, a merge patch, or the operations of a JSON patch.
    """
    if isinstance(message, Mapping):
        return {key: redact_message(item, written_object) for key, item in message.items()}
    if isinstance(message, list):
        return [redact_message(item, written_object) for item in message]
    if not isinstance(message, str):
        return message
    for value in sorted(_collect_sent_values(written_object), key=len, reverse=True):
        # A short value may be a part of a word of the message.
        pattern = re.escape(value) if len(value) > 4 else rf"(?<!\w){re.escape(value)}(?!\w)"
        message = re.sub(pattern, REDACTED, message)
    return message


def _collect_sent_values(written_object: Any) -> set[str]:
    if isinstance(written_object, list):
        values = [op.get("value") for op in written_object if isinstance(op, Mapping)]
    else:
        values = (
            [written_object.get(field_name) for field_name in ("data", "stringData")]
            if isinstance(written_object, Mapping)
            else []
        )
    return {text for field_name in values for text in _walk_leaves(field_name) if text}


def _walk_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _walk_leaves(item)
    elif value is not None:
        yield str(value)
        with contextlib.suppress(binascii.Error, UnicodeDecodeError, ValueError):
            yield base64.b64decode(str(value), validate=True).decode()
