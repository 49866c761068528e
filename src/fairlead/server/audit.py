"""The audit log: a line for each request in audit.k8s.io/v1, at the level Metadata.

Who asked for what, when, and what came of it; never a body, so no Secret's content. What a real server writes under a
policy of that level which leaves out the stage RequestReceived.
"""

import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from fairlead.api import gojson
from fairlead.api.times import rfc3339_micro
from fairlead.api.world import World
from fairlead.server.authorization.attributes import Attributes, request_attributes
from fairlead.server.http.messages import AnyResponse, Request, Response, StreamingResponse

log = logging.getLogger(__name__)
Event = dict[str, Any]


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's word


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class AuditLog:
    """Appends to a file of mode 0600. A line that cannot be written is told of in the log, and the request goes on."""

    def __init__(self, path: Path, world: World) -> None:
        self._world = world
        self._path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise ValueError(f"cannot write the audit log {path}: {error.strerror}; name a file in a folder") from None
        self._failing = False

    def record(self, request: Request, answer: AnyResponse) -> None:
        """Note an answer; of a stream, its start now and its end when it comes."""
        event = self._event(request, answer)
        if isinstance(answer, StreamingResponse):
            self._write(event | {"stage": "ResponseStarted"}, request)
            answer.chunks = self._followed(answer.chunks, event, request)
        else:
            # Where nobody is known, nothing is begun: a real server leaves it at this stage.
            self._write(event | {"stage": "ResponseStarted"} if answer.status == 401 else event, request)

    def close(self) -> None:
        os.close(self._file)

    async def _followed(self, chunks: AsyncIterator[bytes], event: Event, request: Request) -> AsyncIterator[bytes]:
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            self._write(event, request)
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    def _event(self, request: Request, answer: AnyResponse) -> Event:
        asked = request_attributes(request)
        known = answer.status != 401
        event: Event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self._world.uid(),
            "stage": "ResponseComplete",
            "requestURI": _uri(request),
            "verb": asked.verb,
            "user": (request.impersonator or request.user).to_user_info() if known else {},
        }
        if request.impersonator is not None:
            event["impersonatedUser"] = request.user.to_user_info()
            if request.constraint:
                event["authenticationMetadata"] = {"impersonationConstraint": request.constraint}
        if request.source_address:
            event["sourceIPs"] = [request.source_address]
        if agent := request.headers.get("user-agent"):
            event["userAgent"] = agent
        if not asked.path:
            event["objectRef"] = _reference(request, asked)
        event["responseStatus"] = _status(answer)
        if request.allowed is not None:
            event["annotations"] = {
                "authorization.k8s.io/decision": "allow" if request.allowed else "forbid",
                "authorization.k8s.io/reason": request.reason,
            }
        return event

    def _write(self, event: Event, request: Request) -> None:
        times = {
            "requestReceivedTimestamp": rfc3339_micro(request.time),
            "stageTimestamp": rfc3339_micro(self._world.clock.now()),
        }
        annotations = {"annotations": event["annotations"]} if "annotations" in event else {}
        line = msgspec.json.encode({**{k: v for k, v in event.items() if k != "annotations"}, **times, **annotations})
        for plain, escaped in gojson.ESCAPED:
            line = line.replace(plain, escaped)
        try:
            os.write(self._file, line + b"\n")
            self._failing = False
        except OSError as error:
            if not self._failing:
                log.error("the audit log %s cannot be written: %s", self._path, error.strerror)
            self._failing = True


def _uri(request: Request) -> str:
    if not request.query:
        return request.path
    return f"{request.path}?{urlencode(request.query, doseq=True, quote_via=quote, safe='')}"


def _reference(request: Request, asked: Attributes) -> Event:
    given = _Metadata()
    if request.body and asked.verb in ("create", "update") and not request.media_type.endswith("protobuf"):
        try:
            given = msgspec.json.decode(request.body, type=_Named).metadata
        except msgspec.MsgspecError:
            given = _Metadata()
    reference = {
        "resource": asked.resource,
        "namespace": asked.namespace or given.namespace,
        "name": asked.name or given.name,
        "uid": given.uid,
        "apiGroup": asked.group,
        "apiVersion": asked.version,
        "resourceVersion": given.resourceVersion,
        "subresource": asked.subresource,
    }
    return {key: value for key, value in reference.items() if value}


def _status(answer: AnyResponse) -> Event:
    """A Status that was answered, or the code alone."""
    if isinstance(answer, Response) and answer.body.startswith(b'{"kind":"Status"'):
        told: Event = msgspec.json.decode(answer.body)
        return {key: value for key, value in told.items() if key not in ("kind", "apiVersion")} | {
            "code": answer.status
        }
    return {"metadata": {}, "code": answer.status}
