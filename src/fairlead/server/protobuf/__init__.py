"""Decoding of Kubernetes' protobuf. Typed Go clients, for example `kubectl create`, send built-in objects this way.

Responses stay JSON, which those clients accept too. Results and error messages are those of Go's generated decoders.
"""

from fairlead.server.protobuf.envelope import MAGIC, MEDIA_TYPE, Envelope, unwrap
from fairlead.server.protobuf.wire import ProtoError

__all__ = ["MAGIC", "MEDIA_TYPE", "Envelope", "ProtoError", "unwrap"]
