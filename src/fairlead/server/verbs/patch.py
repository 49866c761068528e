"""patch: the four patch types, each evaluated on the newest object."""

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
from fairlead.server.http import bodies, representations
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import write_options
from fairlead.server.http.routing import Route
from fairlead.server.ownership import equal_except_times
from fairlead.server.patches import document_text, json_patch, merge_patch, strategic
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs.replace import expect_name
from fairlead.server.write import decoding, pipeline
from fairlead.server.write.managed_fields import get_unmanaged, set_managed_fields

if TYPE_CHECKING:
    from fairlead.server.app import Server

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MAX_OPERATIONS = 10_000
Evaluate = Callable[[Object], Any]  # from the live object to the patched document


class Patch(NamedTuple):
    """A patch that can be read: how it is applied, what was odd about it, and how a refusal shows what came of it."""

    evaluate: Evaluate
    problems: list[str]
    shown: Callable[[Any], str]


def patch(server: "Server", request: Request, route: Route) -> Response:
    resource = route.resource
    kind = patch_type(request, resource)
    representation = representations.negotiate(request, resource, listing=False)
    bodies.check_size(request.body)
    options = write_options(request, "PatchOptions", apply=kind == APPLY)
    write = pipeline.Write(server, request, resource, route.namespace, route.name, route.subresource, options)
    if kind == APPLY:
        config, twice = configuration(write)
        stored, created = pipeline.update(
            write, lambda live: applied(write, live, config, twice), may_create=not write.subresource, owned=True
        )
    else:
        stored, created = pipeline.update(write, lambda live: evaluated(write, kind, live))
    return representation.object_response(201 if created else 200, stored, request.warnings)


def patch_type(request: Request, resource: Resource) -> str:
    """The kind of patch that the content type names, among those that the resource takes."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    supported = (JSON_PATCH, MERGE_PATCH, APPLY) if resource.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY)
    if kind not in supported:
        raise status_error(415, "UnsupportedMediaType", _unsupported(resource, supported), {})
    return kind


def evaluated(write: pipeline.Write, kind: str, live: Stored | None) -> Object:
    """The object that a patch (not an apply) makes of the live one."""
    if live is None:
        raise not_found(write.resource, write.name)
    given = EVALUATORS[kind](write)  # a malformed patch of a missing object is a 404
    decode = decoding.decode_strategic if kind == STRATEGIC else decoding.decode_patched
    return _same_thing(write, decode(write, given.evaluate(live.object), given.problems, given.shown))


def _unsupported(resource: Resource, supported: tuple[str, ...]) -> str:
    if not resource.custom:
        return "415: Unsupported Media Type"
    return f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported)}"


def _same_thing(write: pipeline.Write, obj: Object) -> Object:
    obj = pipeline.expect_namespace(obj, write)
    return expect_name(obj, write.name)


def applied(write: pipeline.Write, live: Stored | None, config: Object, twice: list[str]) -> Object:
    """The object that an apply makes of the live one: the very live one when nothing changes."""
    obj, managed = write.server.field_tracker.apply(write, live, config)
    mind_repeats(write, twice)
    before = live.object["metadata"].get("managedFields") if live is not None else None
    if live is not None and obj is get_unmanaged(live) and equal_except_times(managed, before):
        return live.object
    given = obj.get("metadata") or {}
    if live is None and given.get("uid"):
        raise uid_of_missing(write, given["uid"])
    write.managed = managed
    same = live is not None and obj is get_unmanaged(
        live
    )  # only owners change, and no default comes of another version
    made = obj if same else decoding.decode_applied(write, obj)
    write.changes.note_merged(write, given, made)
    return set_managed_fields(_same_thing(write, made), managed)


def configuration(write: pipeline.Write) -> tuple[Object, list[str]]:
    """The applied configuration, whose kind and version must be the path's, and a line for each key set twice."""
    from fairlead.server.golang import yaml

    resource = write.resource
    try:
        config, twice = yaml.read(write.request.body)
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
        shown = version if "/" in version else f"/{version}"
        raise bad_request(f"invalid object type: {shown}, Kind={kind}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    return config, twice


def mind_repeats(write: pipeline.Write, twice: list[str]) -> None:
    """Keys that are set twice are told of after all that is wrong with an apply itself."""
    if twice and write.options.validation == "Strict":
        problems = "".join([f"\n  {line}" for line in twice])
        raise bad_request(
            f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{problems}"
        )
    if write.options.validation == "Warn":
        for line in twice:
            write.request.warn(line)


def _json_patch(write: pipeline.Write) -> Patch:
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
        told = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise too_large(f"Request entity too large: {told}")

    def evaluate(live: Object) -> Any:
        try:
            return json_patch.apply(live, operations)
        except json_patch.CannotApply:
            raise rejected_patch(write.resource, write.name) from None
        except encoding.NumberTooLarge as error:
            told = str(error).replace("Go value", "Go struct field jsonPatchOp.value")
            raise bad_request(f"error decoding patch: {told}") from None

    return Patch(evaluate, problems, _document(write))


def _merge_patch(write: pipeline.Write) -> Patch:
    try:
        given, duplicates = encoding.decode(write.request.body)
    except encoding.BadJSON as error:
        raise bad_request(f"error decoding patch: {error}") from None
    if given is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(given, dict):
        into = "Go value of type map[string]interface {}"
        raise bad_request(f"error decoding patch: json: cannot unmarshal {encoding.json_type_name(given)} into {into}")
    problems = [f'duplicate field "{path}"' for path in duplicates]
    return Patch(lambda live: merge_patch.merge(live, given), problems, _document(write))


def _strategic(write: pipeline.Write) -> Patch:
    try:
        given, duplicates = encoding.decode(write.request.body)
    except encoding.BadJSON as error:
        raise bad_request(str(error)) from None
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise bad_request(
            f"json: cannot unmarshal {encoding.json_type_name(given)} into Go value of type map[string]interface {{}}"
        )

    def evaluate(live: Object) -> Any:
        try:
            return encoding.normalize_numbers(strategic.apply(write.resource.schema, live, given))
        except strategic.BadFormat as error:
            raise bad_request(str(error)) from None
        except strategic.StrategicError as error:
            raise unclassified(str(error)) from None

    return Patch(evaluate, [f'duplicate field "{path}"' for path in duplicates], lambda made: format_go(given))


def _document(write: pipeline.Write) -> Callable[[Any], str]:
    """A patched document as text: what a patch opened is a map by name, the rest as it was encoded."""
    live = write.live
    return lambda made: document_text.format_document(write.resource, made, live.object if live else None)


EVALUATORS = {JSON_PATCH: _json_patch, MERGE_PATCH: _merge_patch, STRATEGIC: _strategic}


def uid_of_missing(write: pipeline.Write, uid: str) -> StatusError:
    message = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    return conflict(write.resource, write.name, message)
