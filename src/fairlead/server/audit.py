"""The audit log: lines in the format audit.k8s.io/v1, as the audit policy says.

A line says who requested what, when, and with which result. Without a policy file the level is Metadata: no line holds
a body, so none holds the content of a Secret. The lines are those of a real server with the same policy.
"""

import contextlib
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from fairlead.api import gojson
from fairlead.api.times import rfc3339_micro
from fairlead.api.world import World
from fairlead.server.audit_policy import METADATA_POLICY, AuditPolicy, Verdict
from fairlead.server.authorization.attributes import Attributes, request_attributes
from fairlead.server.golang import encoding
from fairlead.server.golang import yaml as goyaml
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


class _TypedObject(msgspec.Struct):
    kind: str = ""


@dataclass(slots=True)
class AuditedRequest:
    """What is known about a request before it is executed."""

    id: str
    verdict: Verdict
    request_object: msgspec.Raw | None = None

    def keep_request(self, obj: Any) -> None:
        """Keep the decoded body of the request, if the policy wants it in the event."""
        if self.verdict.logs_request:
            self.request_object = msgspec.Raw(encoding.encode(_order_type_first(obj)))


class AuditLog:
    """Appends JSON lines to a file of mode 0600, one per request and logged stage.

    If the disk fails, a message is logged and the request succeeds.
    """

    def __init__(self, path: Path, world: World, policy: AuditPolicy = METADATA_POLICY) -> None:
        self._world = world
        self._path = path
        self._policy = policy
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise ValueError(f"cannot write the audit log {path}: {error.strerror}; name a file in a folder") from None
        self._is_failing = False

    def begin(self, request: Request) -> None:
        """Decide how to log an authenticated request, and log the stage RequestReceived if the policy has it."""
        if request.audit is not None:  # The request waited for a webhook and runs again.
            return
        request.audit = self._decide(request, is_authenticated=True)
        self._write_stage("RequestReceived", self._build_event(request, None), request)

    def record(self, request: Request, response: AnyResponse) -> None:
        """Append the audit event of a response. A watch gets one event when it starts and one when it ends."""
        if request.audit is None:
            request.audit = self._decide(request, is_authenticated=False)
        if request.audit.verdict.level == "None":
            return
        event = self._build_event(request, response)
        if isinstance(response, StreamingResponse):
            self._write_stage("ResponseStarted", event, request)
            response.chunks = self._record_end(response.chunks, event, request)
        else:
            # A request without a known user ends at the stage ResponseStarted, as on a real server.
            self._write_stage("ResponseStarted" if response.status == 401 else "ResponseComplete", event, request)

    def _decide(self, request: Request, *, is_authenticated: bool) -> AuditedRequest:
        verdict = self._policy.decide(request_attributes(request), is_authenticated=is_authenticated)
        return AuditedRequest(self._world.uid(), verdict)

    def close(self) -> None:
        os.close(self._file)

    async def _record_end(self, chunks: AsyncIterator[bytes], event: Event, request: Request) -> AsyncIterator[bytes]:
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            self._write_stage("ResponseComplete", event, request)
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    def _build_event(self, request: Request, response: AnyResponse | None) -> Event:
        """Return the event of a response, or of a request that was only received."""
        assert request.audit is not None
        verdict = request.audit.verdict
        attributes = request_attributes(request)
        is_authenticated = response is None or response.status != 401
        event: Event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": verdict.level,
            "auditID": request.audit.id,
            "stage": "",
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
            metadata = _decode_metadata(request, attributes) if response is not None else _ObjectMetadata()
            event["objectRef"] = _build_object_reference(attributes, metadata)
        if response is None:
            return event
        event["responseStatus"] = _extract_status(response)
        if verdict.logs_request and (body := _find_request_object(request)) is not None:
            event["requestObject"] = _without_managed_fields(body) if verdict.omit_managed_fields else body
        if verdict.logs_response and (body := _find_response_object(response)) is not None:
            event["responseObject"] = _without_managed_fields(body) if verdict.omit_managed_fields else body
        if request.allowed is not None:
            annotations = {
                **request.audit_annotations,
                "authorization.k8s.io/decision": "allow" if request.allowed else "forbid",
                "authorization.k8s.io/reason": request.reason,
            }
            event["annotations"] = dict(sorted(annotations.items()))
        return event

    def _write_stage(self, stage: str, event: Event, request: Request) -> None:
        assert request.audit is not None
        if request.audit.verdict.level != "None" and stage not in request.audit.verdict.omitted_stages:
            self._write_event(event | {"stage": stage}, request)

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


def _decode_metadata(request: Request, attributes: Attributes) -> _ObjectMetadata:
    """Return name, uid and version that the body of a create or an update has."""
    if request.body and attributes.verb in ("create", "update") and not request.media_type.endswith("protobuf"):
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(request.body, type=_NamedObject).metadata
    return _ObjectMetadata()


def _build_object_reference(attributes: Attributes, metadata: _ObjectMetadata) -> Event:
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


def _find_request_object(request: Request) -> msgspec.Raw | None:
    """Return the body in the form of a real server: the decoded object, or the patch as it was sent."""
    assert request.audit is not None
    if request.method != "PATCH":
        return request.audit.request_object
    return _parse_yaml(request.body)


def _find_response_object(response: AnyResponse) -> msgspec.Raw | None:
    """Return the object of a response. Texts and documents without a kind, such as /version, are not objects."""
    if not isinstance(response, Response):
        return None
    if response.headers.get("Content-Type") == "application/yaml":
        return _parse_yaml(response.body)
    if not response.body.startswith(b"{"):
        return None
    has_kind = msgspec.json.decode(response.body, type=_TypedObject).kind
    return (
        msgspec.Raw(msgspec.json.format(response.body, indent=-1)) if has_kind else None
    )  # The log has one line each.


def _parse_yaml(body: bytes) -> msgspec.Raw | None:
    """Return a YAML or JSON text as JSON, or None if it is neither."""
    try:
        return msgspec.Raw(encoding.encode(goyaml.read(body)[0]))
    except encoding.BadJSON:
        return None


def _without_managed_fields(raw: msgspec.Raw) -> Any:
    """Return an object, and the objects of a list or a Table, without metadata.managedFields."""
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        return value
    rows = [row.get("object") for row in value.get("rows") or []] if value.get("kind") == "Table" else []
    for obj in (value, *(value.get("items") or []), *rows):
        if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
            obj["metadata"].pop("managedFields", None)
    return value


def _order_type_first(obj: Any) -> Any:
    if not isinstance(obj, dict):
        return obj
    return {key: obj[key] for key in ("kind", "apiVersion") if key in obj} | obj
