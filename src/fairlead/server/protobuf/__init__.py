"""Decoding of Kubernetes' protobuf, in which Go clients such as `kubectl create` send built-in objects.

Responses stay JSON, which those clients accept too. Results and error messages are those of Go's generated decoders.
"""

from fairlead.server.protobuf.envelope import MAGIC, MEDIA_TYPE, Envelope, unwrap
from fairlead.server.protobuf.wire import ProtoError

__all__ = ["MAGIC", "MEDIA_TYPE", "Envelope", "ProtoError", "unwrap"]
