"""The patch handler: apply, JSON patch, merge patch and strategic merge patch, computed on the newest object."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.server.errors.field_errors import format_go
from fairlead.server.errors.statuses import (
    StatusError,
    bad_request,
    conflict,
    not_found,
    rejected_patch,
    status_error,
    too_large,
    unclassified,
)
from fairlead.server.golang import encoding
from fairlead.server.http import bodies, negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import write_options
from fairlead.server.http.routing import Route
from fairlead.server.ownership import equal_except_times
from fairlead.server.patches import document_text, json_patch, merge_patch, strategic
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs.update import expect_name, update_object
from fairlead.server.write import decoding, metadata
from fairlead.server.write.managed_fields import get_unmanaged, set_managed_fields
from fairlead.server.write.write_request import Write

if TYPE_CHECKING:
    from fairlead.server.app import Server

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MAX_OPERATIONS = 10_000
Evaluate = Callable[[Object], Any]  # takes the live object, returns the patched document


class Patch(NamedTuple):
    """A decoded patch: the function that applies it, its warnings, and the text of the patched document for errors."""

    evaluate: Evaluate
    problems: list[str]
    format_result: Callable[[Any], str]


def patch(server: "Server", request: Request, route: Route) -> Response:
    """Apply the patch in the body to the object of the route, and return the response."""
    resource = route.resource
    kind = parse_patch_type(request, resource)
    representation = negotiation.negotiate(request, resource, is_list=False)
    bodies.check_size(request.body)
    options = write_options(request, "PatchOptions", is_apply=kind == APPLY)
    write = Write(server, request, resource, route.namespace, route.name, route.subresource, options)
    if kind == APPLY:
        config, duplicates = decode_configuration(write)
        stored, created = update_object(
            write,
            lambda live: evaluate_apply(write, live, config, duplicates),
            may_create=not write.subresource,
            is_owned=True,
        )
    else:
        stored, created = update_object(write, lambda live: evaluate_patch(write, kind, live))
    return representation.object_response(201 if created else 200, stored, request.warnings)


def parse_patch_type(request: Request, resource: Resource) -> str:
    """Return the patch type in the Content-Type. Raises 415 if the kind does not support it."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    supported = (JSON_PATCH, MERGE_PATCH, APPLY) if resource.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY)
    if kind not in supported:
        raise status_error(415, "UnsupportedMediaType", _format_unsupported_type(resource, supported), {})
    return kind


def evaluate_patch(write: Write, kind: str, live: Stored | None) -> Object:
    """Return the live object after a JSON, merge or strategic merge patch."""
    if live is None:
        raise not_found(write.resource, write.name)
    patch = EVALUATORS[kind](write)  # after the check above: a malformed patch of a missing object gets 404
    decode = decoding.decode_strategic if kind == STRATEGIC else decoding.decode_patched
    return _check_identity(write, decode(write, patch.evaluate(live.object), patch.problems, patch.format_result))


def _format_unsupported_type(resource: Resource, supported: tuple[str, ...]) -> str:
    if not resource.custom:
        return "415: Unsupported Media Type"
    return f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported)}"


def _check_identity(write: Write, obj: Object) -> Object:
    obj = metadata.expect_namespace(obj, write)
    return expect_name(obj, write.name)


def evaluate_apply(write: Write, live: Stored | None, config: Object, duplicates: list[str]) -> Object:
    """Return the object after an apply, or the live object itself if nothing changes."""
    obj, managed_fields = write.server.field_tracker.apply(write, live, config)
    report_duplicate_keys(write, duplicates)
    before = live.object["metadata"].get("managedFields") if live is not None else None
    if live is not None and obj is get_unmanaged(live) and equal_except_times(managed_fields, before):
        return live.object
    metadata = obj.get("metadata") or {}
    if live is None and metadata.get("uid"):
        raise build_uid_mismatch(write, metadata["uid"])
    write.managed = managed_fields
    # If only owners change, the object is not decoded again, so it gets no defaults of another version.
    only_owners_change = live is not None and obj is get_unmanaged(live)
    result = obj if only_owners_change else decoding.decode_applied(write, obj)
    write.changes.note_merged(write, metadata, result)
    return set_managed_fields(_check_identity(write, result), managed_fields)


def decode_configuration(write: Write) -> tuple[Object, list[str]]:
    """Return the applied configuration, and a message for each duplicate key.

    Raises 400 if its apiVersion and kind are not those of the path.
    """
    from fairlead.server.golang import yaml

    resource = write.resource
    try:
        config, duplicates = yaml.read(write.request.body)
    except encoding.BadJSON as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if config is None:
        config = {}
    if not isinstance(config, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{encoding.json_type_name(config)} into Go value of type map[string]interface {{}}"
        )
    version, kind = (config[key] if isinstance(config.get(key), str) else "" for key in ("apiVersion", "kind"))
    if (version, kind) != (resource.api_version, resource.kind):
        version_text = version if "/" in version else f"/{version}"
        raise bad_request(f"invalid object type: {version_text}, Kind={kind}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return config, duplicates


def report_duplicate_keys(write: Write, duplicates: list[str]) -> None:
    """Raise 400 or warn about duplicate keys, depending on fieldValidation.

    A real server checks for them after everything else in an apply.
    """
    if duplicates and write.options.validation == "Strict":
        problems = "".join([f"\n  {line}" for line in duplicates])
        raise bad_request(
            f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{problems}"
        )
    if write.options.validation == "Warn":
        for line in duplicates:
            write.request.warn(line)


def _decode_json_patch(write: Write) -> Patch:
    body, problems = write.request.body, []
    if write.options.validation != "Ignore":
        try:
            problems = json_patch.check_fields(body)
        except encoding.BadJSON as error:
            raise bad_request(f"error decoding patch: {error}") from None
    try:
        operations = json_patch.decode(body)
    except encoding.BadJSON as error:
        raise bad_request(str(error)) from None
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise too_large(f"Request entity too large: {message}")

    def evaluate(live: Object) -> Any:
        try:
            return json_patch.apply(live, operations)
        except json_patch.CannotApply:
            raise rejected_patch(write.resource, write.name) from None
        except encoding.NumberTooLarge as error:
            message = str(error).replace("Go value", "Go struct field jsonPatchOp.value")
            raise bad_request(f"error decoding patch: {message}") from None

    return Patch(evaluate, problems, _build_result_formatter(write))


def _decode_merge_patch(write: Write) -> Patch:
    try:
        body, duplicates = encoding.decode(write.request.body)
    except encoding.BadJSON as error:
        raise bad_request(f"error decoding patch: {error}") from None
    if body is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(body, dict):
        into = "Go value of type map[string]interface {}"
        raise bad_request(f"error decoding patch: json: cannot unmarshal {encoding.json_type_name(body)} into {into}")
    problems = [f'duplicate field "{path}"' for path in duplicates]
    return Patch(lambda live: merge_patch.merge(live, body), problems, _build_result_formatter(write))


def _decode_strategic_patch(write: Write) -> Patch:
    try:
        body, duplicates = encoding.decode(write.request.body)
    except encoding.BadJSON as error:
        raise bad_request(str(error)) from None
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise bad_request(
            f"json: cannot unmarshal {encoding.json_type_name(body)} into Go value of type map[string]interface {{}}"
        )

    def evaluate(live: Object) -> Any:
        try:
            return encoding.normalize_numbers(strategic.apply(write.resource.schema, live, body))
        except strategic.BadFormat as error:
            raise bad_request(str(error)) from None
        except strategic.StrategicError as error:
            raise unclassified(str(error)) from None

    return Patch(evaluate, [f'duplicate field "{path}"' for path in duplicates], lambda _: format_go(body))


def _build_result_formatter(write: Write) -> Callable[[Any], str]:
    """Return a function that formats a patched document as a real server's error messages do."""
    live = write.live
    return lambda result: document_text.format_document(write.resource, result, live.object if live else None)


EVALUATORS = {JSON_PATCH: _decode_json_patch, MERGE_PATCH: _decode_merge_patch, STRATEGIC: _decode_strategic_patch}


def build_uid_mismatch(write: Write, uid: str) -> StatusError:
    message = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    return conflict(write.resource, write.name, message)
