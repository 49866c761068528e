"""The audit log: one line per request in the format audit.k8s.io/v1, at the level Metadata.

A line says who requested what, when, and with which result. It never holds a body, so it never holds the content of a
Secret. The lines are those of a real server whose policy has the level Metadata and omits the stage RequestReceived.
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


class _ObjectMetadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the field name of the API


class _NamedObject(msgspec.Struct):
    metadata: _ObjectMetadata = msgspec.field(default_factory=_ObjectMetadata)


class AuditLog:
    """Appends one JSON line per request to a file of mode 0600.

    If the disk fails, a message is logged and the request succeeds.
    """

    def __init__(self, path: Path, world: World) -> None:
        self._world = world
        self._path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise ValueError(f"cannot write the audit log {path}: {error.strerror}; name a file in a folder") from None
        self._is_failing = False

    def record(self, request: Request, response: AnyResponse) -> None:
        """Append the audit event of a response. A watch gets one event when it starts and one when it ends."""
        event = self._build_event(request, response)
        if isinstance(response, StreamingResponse):
            self._write_event(event | {"stage": "ResponseStarted"}, request)
            response.chunks = self._record_end(response.chunks, event, request)
        else:
            # A request without a known user ends at the stage ResponseStarted, as on a real server.
            self._write_event(event | {"stage": "ResponseStarted"} if response.status == 401 else event, request)

    def close(self) -> None:
        os.close(self._file)

    async def _record_end(self, chunks: AsyncIterator[bytes], event: Event, request: Request) -> AsyncIterator[bytes]:
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            self._write_event(event, request)
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    def _build_event(self, request: Request, response: AnyResponse) -> Event:
        attributes = request_attributes(request)
        is_authenticated = response.status != 401
        event: Event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self._world.uid(),
            "stage": "ResponseComplete",
            "requestURI": _format_uri(request),
            "verb": attributes.verb,
            "user": (request.impersonator or request.user).to_user_info() if is_authenticated else {},
        }
        if request.impersonator is not None:
            event["impersonatedUser"] = request.user.to_user_info()
            if request.constraint:
                event["authenticationMetadata"] = {"impersonationConstraint": request.constraint}
        if request.source_address:
            event["sourceIPs"] = [request.source_address]
        if agent := request.headers.get("user-agent"):
            event["userAgent"] = agent
        if not attributes.path:
            event["objectRef"] = _build_object_reference(request, attributes)
        event["responseStatus"] = _extract_status(response)
        if request.allowed is not None:
            annotations = {
                **request.audit_annotations,
                "authorization.k8s.io/decision": "allow" if request.allowed else "forbid",
                "authorization.k8s.io/reason": request.reason,
            }
            event["annotations"] = dict(sorted(annotations.items()))
        return event

    def _write_event(self, event: Event, request: Request) -> None:
        times = {
            "requestReceivedTimestamp": rfc3339_micro(request.time),
            "stageTimestamp": rfc3339_micro(self._world.clock.now()),
        }
        annotations = {"annotations": event["annotations"]} if "annotations" in event else {}
        line = msgspec.json.encode({**{k: v for k, v in event.items() if k != "annotations"}, **times, **annotations})
        for character, escaped in gojson.ESCAPED:
            line = line.replace(character, escaped)
        try:
            os.write(self._file, line + b"\n")
            self._is_failing = False
        except OSError as error:
            if not self._is_failing:
                log.error("cannot write the audit log %s: %s", self._path, error.strerror)
            self._is_failing = True


def _format_uri(request: Request) -> str:
    if not request.query:
        return request.path
    return f"{request.path}?{urlencode(request.query, doseq=True, quote_via=quote, safe='')}"


def _build_object_reference(request: Request, attributes: Attributes) -> Event:
    metadata = _ObjectMetadata()
    if request.body and attributes.verb in ("create", "update") and not request.media_type.endswith("protobuf"):
        try:
            metadata = msgspec.json.decode(request.body, type=_NamedObject).metadata
        except msgspec.MsgspecError:
            metadata = _ObjectMetadata()
    reference = {
        "resource": attributes.resource,
        "namespace": attributes.namespace or metadata.namespace,
        "name": attributes.name or metadata.name,
        "uid": metadata.uid,
        "apiGroup": attributes.group,
        "apiVersion": attributes.version,
        "resourceVersion": metadata.resourceVersion,
        "subresource": attributes.subresource,
    }
    return {key: value for key, value in reference.items() if value}


def _extract_status(response: AnyResponse) -> Event:
    """Return the Status object in the body of an error response, or only {"code": …} for any other response."""
    if isinstance(response, Response) and response.body.startswith(b'{"kind":"Status"'):
        status: Event = msgspec.json.decode(response.body)
        return {key: value for key, value in status.items() if key not in ("kind", "apiVersion")} | {
            "code": response.status
        }
    return {"metadata": {}, "code": response.status}
