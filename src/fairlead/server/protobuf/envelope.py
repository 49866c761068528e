"""The envelope of a protobuf body: four magic bytes and a runtime.Unknown message that contains the object."""

import base64
from typing import Any, Final, NamedTuple

from fairlead.api.gojson import quote_go
from fairlead.server.protobuf.messages import decode
from fairlead.server.protobuf.wire import ProtoError
from fairlead.server.schema import builtin

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
_MAGIC_AS_GO: Final = " ".join(str(byte) for byte in MAGIC)


class Envelope(NamedTuple):
    """The apiVersion and kind that a protobuf body names, and its encoded object."""

    api_version: str
    kind: str
    raw: bytes

    def object(self) -> dict[str, Any]:
        """Return the decoded object as JSON values. Raises ProtoError if it cannot be decoded."""
        type_name = builtin.table()["roots"].get(f"{self.api_version}/{self.kind}")
        if self.kind == "DeleteOptions":  # Every group has this kind.
            type_name = "meta.v1.DeleteOptions"
        if type_name is None:
            scheme_version = f'version {quote_go(self.api_version)} in scheme "pkg/api/legacyscheme/scheme.go:30"'
            raise ProtoError(f"no kind {quote_go(self.kind)} is registered for {scheme_version}")
        return {"apiVersion": self.api_version, "kind": self.kind, **decode(type_name, self.raw)}


def unwrap(body: bytes, api_version: str, kind: str) -> Envelope:
    """Return the envelope of a body.

    A body without apiVersion and kind gets those of the request. Raises ProtoError.
    """
    if not body:
        raise ProtoError("empty data")
    if not body.startswith(MAGIC):
        raise ProtoError(f"provided data does not appear to be a protobuf message, expected prefix [{_MAGIC_AS_GO}]")
    if len(body) == len(MAGIC):
        raise ProtoError("empty body")
    unknown = decode("runtime.Unknown", body[len(MAGIC) :])
    type_meta = unknown.get("typeMeta", {})
    sent_version = type_meta.get("apiVersion", "")
    if sent_version in ("", "/") or sent_version.count("/") > 1:  # Go ignores such a version.
        sent_version = api_version
    return Envelope(sent_version, type_meta.get("kind") or kind, base64.b64decode(unknown.get("raw", "")))
