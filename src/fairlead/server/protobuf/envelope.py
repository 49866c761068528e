"""The envelope of every body: four magic bytes and a runtime.Unknown that says what the object inside it is."""

import base64
from typing import Any, Final, NamedTuple

from fairlead.server.errors.field_errors import quote_go
from fairlead.server.protobuf.messages import decode
from fairlead.server.protobuf.wire import ProtoError
from fairlead.server.schema import builtin

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
_SHOWN: Final = " ".join(str(byte) for byte in MAGIC)


class Envelope(NamedTuple):
    """What a body holds, by its own words, and the message itself."""

    api_version: str
    kind: str
    raw: bytes

    def object(self) -> dict[str, Any]:
        """The message as the JSON that it stands for. Raises ProtoError."""
        named = builtin.table()["roots"].get(f"{self.api_version}/{self.kind}")
        if self.kind == "DeleteOptions":  # of whichever group
            named = "meta.v1.DeleteOptions"
        if named is None:
            where = f'version {quote_go(self.api_version)} in scheme "pkg/api/legacyscheme/scheme.go:30"'
            raise ProtoError(f"no kind {quote_go(self.kind)} is registered for {where}")
        return {"apiVersion": self.api_version, "kind": self.kind, **decode(named, self.raw)}


def unwrap(body: bytes, api_version: str, kind: str) -> Envelope:
    """Open a body; what it does not say is what the path says. Raises ProtoError."""
    if not body:
        raise ProtoError("empty data")
    if not body.startswith(MAGIC):
        raise ProtoError(f"provided data does not appear to be a protobuf message, expected prefix [{_SHOWN}]")
    if len(body) == len(MAGIC):
        raise ProtoError("empty body")
    unknown = decode("runtime.Unknown", body[len(MAGIC) :])
    about = unknown.get("typeMeta", {})
    said = about.get("apiVersion", "")
    if said in ("", "/") or said.count("/") > 1:  # says nothing
        said = api_version
    return Envelope(said, about.get("kind") or kind, base64.b64decode(unknown.get("raw", "")))
