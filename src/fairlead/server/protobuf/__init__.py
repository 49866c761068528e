"""Kubernetes' protobuf, read only: typed Go clients (`kubectl create` among them) send built-in objects that way.

Answers stay JSON, which those clients accept too. What is read, and how what cannot be read is refused, is what the
decoders generated for Go do.
"""

from fairlead.server.protobuf.envelope import MAGIC, MEDIA_TYPE, Envelope, unwrap
from fairlead.server.protobuf.wire import ProtoError

__all__ = ["MAGIC", "MEDIA_TYPE", "Envelope", "ProtoError", "unwrap"]
