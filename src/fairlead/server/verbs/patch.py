"""patch: the four patch types, each evaluated on the newest object."""

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.server import bodies, decoding, encoding, pipeline, representations
from fairlead.server.exchange import Request, Response
from fairlead.server.failures import (
    Failure,
    bad_request,
    conflict,
    failure,
    rejected_patch,
    too_large,
)
from fairlead.server.options import write_options
from fairlead.server.patches import json_patch, merge_patch
from fairlead.server.registry.resource import Object
from fairlead.server.routing import Route
from fairlead.server.store import Stored
from fairlead.server.verbs.replace import expect_name

if TYPE_CHECKING:
    from fairlead.server.app import Server

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MAX_OPERATIONS = 10_000


def patch(server: "Server", request: Request, route: Route) -> Response:
    resource = route.resource
    kind = request.headers.get("content-type", "").partition(";")[0]
    supported = [JSON_PATCH, MERGE_PATCH]
    if kind not in supported:
        raise failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    representation = representations.negotiate(request, resource, listing=False)
    bodies.check_size(request.body)
    options = write_options(request, "PatchOptions", apply=kind == APPLY)
    write = pipeline.Write(server, request, resource, route.namespace, route.name, route.subresource, options)
    evaluate = _json_patch(write) if kind == JSON_PATCH else _merge_patch(write)

    def wanted(live: Stored | None) -> Object:
        assert live is not None
        return _checked(write, live, evaluate(live.object))

    stored, created = pipeline.update(write, wanted)
    return representation.answer(201 if created else 200, stored, request.warnings)


def _checked(write: pipeline.Write, live: Stored, patched: Any) -> Object:
    """A patched document as an object of the kind, still about the same thing."""
    obj = decoding.patched(write.request, write.resource, patched, write.options.validation)
    obj = pipeline.expect_namespace(obj, write)
    obj = expect_name(obj, write.name)
    return pipeline.dedup_owners(obj, write, pipeline.DUPLICATE_OWNERS_PATCHED)


def _json_patch(write: pipeline.Write) -> Any:
    body = write.request.body
    try:
        operations = json_patch.decode(body)
    except msgspec.DecodeError:
        raise _undecodable(body, "[]handlers.jsonPatchOp") from None
    if len(operations) > MAX_OPERATIONS:
        raise too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")

    def evaluate(live: Object) -> Any:
        try:
            return json_patch.apply(live, operations)
        except json_patch.CannotApply:
            raise rejected_patch(write.resource, write.name) from None

    return evaluate


def _merge_patch(write: pipeline.Write) -> Any:
    try:
        given, _ = encoding.decode(write.request.body)
    except encoding.BadJSON as error:
        raise bad_request(f"error decoding patch: {error}") from None
    if given is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(given, dict):
        raise _undecodable(write.request.body, "map[string]interface {}")
    return lambda live: merge_patch.merge(live, given)


def _undecodable(body: bytes, into: str) -> Failure:
    try:
        value, _ = encoding.decode(body)
    except encoding.BadJSON as error:
        return bad_request(f"error decoding patch: {error}")
    kind = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    return bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go value of type {into}")


def uid_of_missing(write: pipeline.Write, uid: str) -> Failure:
    message = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    return conflict(write.resource, write.name, message)
