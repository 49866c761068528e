"""Decoding of submitted objects: check types, report and drop unknown fields, add defaults."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.api.gojson import quote_go
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import bad_request, invalid_kind
from fairlead.server.golang import encoding
from fairlead.server.http import bodies
from fairlead.server.http.messages import Request
from fairlead.server.registry.defaults import TEMPLATE_GENERATION
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec, defaulting, pruning
from fairlead.server.storage import versions

if TYPE_CHECKING:
    from fairlead.server.write.write_request import Write


def decode_body(write: "Write") -> Object:
    """Return the body of a create or update as an object of the path's kind. Raises 400 for any other body."""
    request, resource, validation = write.request, write.resource, write.options.validation
    value, duplicates = bodies.decode_object(request, resource)
    try:
        obj, unknown = decode(resource, value)
    except codec.DecodeError as error:
        raise bad_request(f"{_format_kind_mismatch(resource, value)}: {error.message}") from None
    write.changes.note_submitted(resource, value)
    problems = _order_problems(request, resource, unknown, duplicates)
    if problems and validation == "Strict":
        if duplicates and bodies.media_type(request) == "yaml":
            lines = "".join(f"\n  {line}" for line in duplicates)
            problems = [f"yaml: unmarshal errors:{lines}", *problems[len(duplicates) :]]
        message = f"strict decoding error: {', '.join(problems)}"
        raise bad_request(f"{_format_kind_mismatch(resource, value)}: {message}")
    if validation == "Warn":
        for problem in problems:
            request.warn(problem)
    obj = fill_defaults(resource, obj)
    if request.audit is not None:
        request.audit.keep_request(obj)
    return obj


FormatDocument = Callable[[Any], str]  # formats a patched document for an error message


def decode_patched(write: "Write", value: Any, duplicates: list[str], format_document: FormatDocument) -> Object:
    """Return a patched document as an object of the path's kind. Raises 422 on the field `patch` for any other."""
    resource = write.resource
    if not isinstance(value, dict):
        raise _build_invalid_patch_error(format_document(value), "couldn't get version/kind; json parse error")
    problem = bodies.type_meta_error(value)
    if not problem and not resource.custom:
        problem = bodies.kind_mismatch(value, resource, is_patched=True)
    if problem:
        raise _build_invalid_patch_error(format_document(value), problem)
    if resource.custom:
        if not value.get("kind"):
            document = format_document(value)
            raise _build_invalid_patch_error(document, f"Object 'Kind' is missing in '{document}'")
        if "apiVersion" in value and value["apiVersion"] is None:
            message = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
            raise _build_invalid_patch_error(format_document(value), message)
    elif not value.get("kind"):
        value = {**value, "kind": resource.kind}
    obj: Object = {}
    try:
        if resource.custom and not _has_group_kind(resource, value):
            # No schema applies. The write is rejected later, after the checks that come first on a real server.
            return pruning.decode_metadata(value)
        if not resource.custom and not value.get("apiVersion"):
            # A real server decodes it as the internal type, which shares no field with the served versions.
            unknown = sorted(value.keys() - {"apiVersion", "kind"})
        else:
            obj, unknown = decode(resource, value)
    except codec.DecodeError as error:
        document = format_document(value)
        raise _build_invalid_patch_error(document, _find_first_error(resource, document) or error.message) from None
    write.changes.note_submitted(resource, value)
    _report_problems(write, [*duplicates, *_describe_problems(unknown, [])], lambda: format_document(value))
    return fill_defaults(resource, obj) if obj else obj


def _has_group_kind(resource: Resource, value: Object) -> bool:
    group, _, _ = str(value.get("apiVersion") or "").rpartition("/")
    return (group, value.get("kind")) == (resource.group, resource.kind)


def _find_first_error(resource: Resource, document: str) -> str:
    """Return the first decode error of a document text, whose fields may be in another order than the object's."""
    try:
        decode(resource, encoding.decode(document.encode())[0])
    except codec.DecodeError as error:
        return error.message
    return ""


def decode_strategic(write: "Write", value: Object, duplicates: list[str], format_document: FormatDocument) -> Object:
    """Return the result of a strategic merge patch as an object of the path's kind.

    Like `decode_patched`, but the result may name any kind and version.
    """
    resource = write.resource
    try:
        for key in ("apiVersion", "kind"):
            codec.expect_string(value.get(key) or "")
        obj, unknown = decode(resource, {**value, "apiVersion": resource.api_version, "kind": resource.kind})
    except codec.DecodeError as error:
        raise _build_invalid_patch_error(format_document(value), error.from_map) from None
    write.changes.note_submitted(resource, value)
    _report_problems(write, [*duplicates, *_describe_problems(unknown, [])], lambda: format_document(value))
    return fill_defaults(resource, obj)


def _report_problems(write: "Write", problems: list[str], format_document: Callable[[], str]) -> None:
    if problems and write.options.validation == "Strict":
        raise _build_invalid_patch_error(format_document(), f"strict decoding error: {', '.join(problems)}")
    if write.options.validation == "Warn":
        for problem in problems:
            write.request.warn(problem)


def decode_applied(write: "Write", value: Object) -> Object:
    """Return the result of an apply as an object of the path's kind. The merge has already checked the types.

    Nulls that the merge leaves in a custom resource stay: validation rejects them.
    """
    resource = write.resource
    try:
        obj = pruning.decode_metadata(value) if resource.custom else decode(resource, value)[0]
    except codec.DecodeError as error:
        raise bad_request(error.message) from None
    write.changes.note_submitted(resource, value)
    return fill_defaults(resource, obj)


def decode(resource: Resource, value: Object) -> tuple[Object, list[str]]:
    """Return the object without unknown fields, and the paths of these fields. Raises codec.DecodeError."""
    if resource.custom:
        return pruning.prune(resource.schema, value)
    result = codec.decode(resource.schema, value)
    obj = result.object
    if (value.get("metadata") or {}).get("managedFields") == []:
        # An empty list differs from an absent one: it resets the managed fields.
        obj = {**obj, "metadata": {**obj["metadata"], "managedFields": []}}
    if (resource.group, resource.kind) == ("apps", "DaemonSet"):
        _check_template_generation((obj.get("metadata") or {}).get("annotations") or {})
    return obj, result.unknown


def _check_template_generation(annotations: Object) -> None:
    """Raise codec.DecodeError if the templateGeneration annotation of a DaemonSet is not a number.

    The annotation was a field in an earlier API version.
    """
    generation = annotations.get(TEMPLATE_GENERATION, "0")
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", generation):
        raise codec.DecodeError(f"strconv.ParseInt: parsing {quote_go(generation)}: invalid syntax")


def fill_defaults(resource: Resource, obj: Object) -> Object:
    """Return the object with the default values of its kind."""
    if resource.custom:
        defaulted: Object = defaulting.apply_defaults(resource.schema, obj)
        return defaulted
    defaulted = resource.default(obj) if resource.default else obj
    if resource.storage is None:
        return defaulted
    # A real server converts every version to the internal one and back, which may add fields.
    return versions.convert(resource, versions.stored_form(resource, defaulted))


def _order_problems(request: Request, resource: Resource, unknown: list[str], duplicates: list[str]) -> list[str]:
    """Return messages for the unknown and duplicate fields in the order of a real server.

    For built-in kinds that is the order in the body. For custom resources and in YAML, duplicate fields come first.
    """
    if bodies.media_type(request) == "yaml":
        return [*duplicates, *_describe_problems(unknown, [])]
    if resource.custom or not (unknown and duplicates):
        return _describe_problems([], duplicates) + _describe_problems(unknown, [])
    positions = encoding.field_positions(request.body)
    return sorted(_describe_problems(unknown, duplicates), key=lambda problem: positions.get(problem, len(positions)))


def _describe_problems(unknown: list[str], duplicates: list[str]) -> list[str]:
    return [f'unknown field "{path}"' for path in unknown] + [f'duplicate field "{path}"' for path in duplicates]


def _format_kind_mismatch(resource: Resource, value: Object) -> str:
    kind = value.get("kind") or resource.kind
    return f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def _build_invalid_patch_error(document: str, message: str) -> Exception:
    detail = f"Invalid value: {quote_go(document)}: {message}"
    return invalid_kind("", "", "", [FieldError("FieldValueInvalid", "patch", detail)])
