"""Every exception that a documented function of fairlead raises, each with its cause and its remedy.

- The server rejected a request: `ApiError` and its subclasses, one for each `reason` of a Status.
- A write did not happen, or nobody knows whether it did: `WriteError` and its subclasses, `UnknownOutcome`, `NotSent`.
- A handler ended a pass on purpose: `Outcome` with `RequeueAfter`, `Wait` and `Terminal`.
- The operator's code or its surroundings need a change: `UserError` and its subclasses, `NotWatched`.
- The run ended: `LeaseLost`, `NotLeading`.
"""

from fairlead.api.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
    UnknownOutcome,
    UnsupportedMediaType,
    UserError,
)
from fairlead.api.kinds import PayloadError
from fairlead.client.access import AccessError
from fairlead.client.credentials import CredentialsError
from fairlead.client.discovery import NotServed
from fairlead.client.transport import NotSent
from fairlead.runtime.handlers import HandlerCancelled, HandlerError, HandlerTimeout, HookFailed
from fairlead.runtime.leases import LeaseLost
from fairlead.runtime.outcomes import Outcome, RequeueAfter, Terminal, Wait
from fairlead.runtime.sources import DeclarationError
from fairlead.runtime.transports import NotLeading
from fairlead.runtime.watched_kinds import NotWatched
from fairlead.writes.errors import (
    DecisionContention,
    DuplicatePayload,
    ForeignObject,
    ImmutableField,
    ImpureDecision,
    ObjectChanged,
    ObjectDeleted,
    ObjectDeleting,
    ObjectReplaced,
    PatchTestMismatch,
    ReadValueInPayload,
    StatusSuperseded,
    UndeclaredField,
    WriteError,
)

__all__ = [
    "AccessError",
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "Conflict",
    "CredentialsError",
    "DecisionContention",
    "DeclarationError",
    "DuplicatePayload",
    "Expired",
    "Forbidden",
    "ForeignObject",
    "Gone",
    "HandlerCancelled",
    "HandlerError",
    "HandlerTimeout",
    "HookFailed",
    "ImmutableField",
    "ImpureDecision",
    "InternalError",
    "Invalid",
    "LeaseLost",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "NotLeading",
    "NotSent",
    "NotServed",
    "NotWatched",
    "ObjectChanged",
    "ObjectDeleted",
    "ObjectDeleting",
    "ObjectReplaced",
    "Outcome",
    "PatchTestMismatch",
    "PayloadError",
    "ReadValueInPayload",
    "RequestEntityTooLarge",
    "RequeueAfter",
    "ServerTimeout",
    "ServiceUnavailable",
    "StatusSuperseded",
    "Terminal",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UndeclaredField",
    "UnknownOutcome",
    "UnsupportedMediaType",
    "UserError",
    "Wait",
    "WriteError",
]
