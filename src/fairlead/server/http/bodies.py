"""Request bodies: the accepted media types, and decoding a body into an object of the kind that the path names."""

from typing import Any

from fairlead.server import protobuf
from fairlead.server.errors.statuses import StatusError, bad_request, too_large, unsupported_media_type
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Request
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import builtin, codec, pruning
from fairlead.server.storage import versions

ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
Object = dict[str, Any]


def check_size(body: bytes) -> None:
    """Raise 413 if a body is larger than a real server accepts."""
    if len(body) > encoding.MAX_BODY:
        raise too_large(f"Request entity too large: limit is {encoding.MAX_BODY}")


def media_type(request: Request) -> str:
    """Return json, yaml or protobuf for the Content-Type of a request. Raises 415 for any other type."""
    media = request.media_type
    if media in ("", "application/json"):
        return "json"
    if media == "application/yaml":
        return "yaml"
    if media == protobuf.MEDIA_TYPE:
        return "protobuf"
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}"
    )


def decode_value(request: Request, api_version: str = "", kind: str = "") -> tuple[Any, list[str]]:
    """Return the value of a body and its duplicate keys: as paths, or for YAML as messages.

    A protobuf body that does not name its type is decoded as `api_version` and `kind`. Raises encoding.BadJSON or
    protobuf.ProtoError.
    """
    check_size(request.body)
    media = media_type(request)
    if media == "yaml":
        from fairlead.server.golang import yaml

        return yaml.read(request.body)
    if media == "protobuf":
        return protobuf.unwrap(request.body, api_version, kind).object(), []
    return encoding.decode(request.body)


def decode_plain(request: Request, api_version: str, kind: str) -> Any:
    """Return the value of a body that is not stored, such as DeleteOptions or an Eviction.

    Raises 400 if it is malformed.
    """
    try:
        return decode_value(request, api_version, kind)[0]
    except protobuf.ProtoError as error:
        raise bad_request(str(error)) from None
    except encoding.BadJSON as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def summarize_body(body: bytes) -> str:
    """Return the first bytes of a body as decode errors quote them, or "<empty>"."""
    if not body:
        return "<empty>"
    ellipsis = " ..." if len(body) > 30 else ""
    first_bytes = body[:30]
    return (first_bytes.decode("utf-8", "replace") if body[:1] == b"{" else first_bytes.hex()) + ellipsis


_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def not_an_object(value: Any) -> str:
    """Return the error message for a body whose JSON value is not a map."""
    problem = f"json: cannot unmarshal {encoding.json_type_name(value)} into Go value of type {_TYPE_META}"
    return f"couldn't get version/kind; json parse error: {problem}"


def unrecognized_object(resource: Resource, body: bytes, message: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): {message} ({summarize_body(body)})"
    )


def decode_object(request: Request, resource: Resource) -> tuple[Object, list[str]]:
    """Return the object in a body, and its duplicate keys. Of its fields, only apiVersion and kind are checked."""
    if media_type(request) == "protobuf":
        return _decode_protobuf(request, resource), []
    try:
        value, duplicates = decode_value(request)
    except encoding.BadJSON as error:
        problem = str(error)
        if isinstance(error, encoding.NumberTooLarge) and resource.custom:
            raise _build_kind_mismatch_error(resource.kind, resource.api_version, resource, problem) from None
        if media_type(request) == "yaml":
            problem = problem.removeprefix("error converting YAML to JSON: ")
        else:
            problem = f"couldn't get version/kind; json parse error: {problem}"
        raise unrecognized_object(resource, request.body, problem) from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise unrecognized_object(resource, request.body, not_an_object(value))
    if resource.custom and (
        unknown := [f'unknown field "{path}"' for path in _find_unknown_fields_of_other_version(value, resource)]
    ):
        if request.first("fieldValidation") == "Strict":
            problems = ", ".join([*unknown, *[f'duplicate field "{path}"' for path in duplicates]])
            raise _build_kind_mismatch_error(
                value["kind"], value["apiVersion"], resource, f"strict decoding error: {problems}"
            )
        for problem in unknown if request.first("fieldValidation") in ("", "Warn") else ():
            request.warn(problem)
    return check_type_meta(value, resource, request.body), duplicates


def _find_unknown_fields_of_other_version(value: Object, resource: Resource) -> list[str]:
    """Return the unknown fields of an object whose apiVersion is another version of the kind in the path."""
    api_version = value.get("apiVersion")
    if value.get("kind") != resource.kind or not isinstance(api_version, str):
        return []
    if api_version in ("", resource.api_version):
        return []
    schema = versions.schema(resource, api_version)
    if schema is None:  # the version is not defined, so its fields are unknown
        return sorted(value.keys() - {"apiVersion", "kind", "metadata"})
    try:
        return pruning.prune(schema, value)[1]
    except codec.DecodeError:
        return []


def _decode_protobuf(request: Request, resource: Resource) -> Object:
    if resource.custom:  # a real server closes the connection instead
        raise unsupported_media_type("custom resources have no protobuf form: send application/json")
    check_size(request.body)
    try:
        envelope = protobuf.unwrap(request.body, resource.api_version, resource.kind)
    except protobuf.ProtoError as error:
        raise unrecognized_object(resource, request.body, str(error)) from None
    try:
        value = envelope.object()
    except protobuf.ProtoError as error:
        raise _build_kind_mismatch_error(envelope.kind, envelope.api_version, resource, str(error)) from None
    return check_type_meta(value, resource, request.body)


def _build_kind_mismatch_error(kind: str, api_version: str, resource: Resource, reason: str) -> StatusError:
    version = api_version.rpartition("/")[2]
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {reason}')


def check_type_meta(value: Object, resource: Resource, body: bytes) -> Object:
    """Return `value` with the path's kind and apiVersion.

    Raises 400 if it names others. Built-in kinds may omit them.
    """
    if problem := type_meta_error(value):
        raise unrecognized_object(resource, body, problem)
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if resource.custom:
        if not kind:
            raise unrecognized_object(
                resource, body, f"Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'"
            )
        if not api_version:
            raise unrecognized_object(
                resource, body, "Object 'apiVersion' is missing in '" + body.decode("utf-8", "replace") + "'"
            )
        if api_version != resource.api_version:
            raise bad_request(
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        return value
    if mismatch := kind_mismatch(value, resource):
        reason = _find_decode_error(value) or mismatch
        raise _build_kind_mismatch_error(kind or resource.kind, api_version or resource.api_version, resource, reason)
    if api_version and kind:
        return value
    return {**value, "apiVersion": resource.api_version, "kind": resource.kind}


def _find_decode_error(value: Object) -> str:
    """Return why an object does not fit the Go type of the built-in kind that it names, or "" if it does."""
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if f"{api_version}/{kind}" not in builtin.table()["roots"]:
        return ""
    group, _, version = api_version.rpartition("/")
    try:
        codec.decode(builtin.schema_of_kind(group, version, kind), value)
    except codec.DecodeError as error:
        return error.message
    return ""


def type_meta_error(value: Object) -> str:
    """Return the error message for an apiVersion or kind that is not a string, or "" if both are valid."""
    for key in ("apiVersion", "kind"):
        field_value = value.get(key)
        if field_value is not None and not isinstance(field_value, str):
            json_type = {bool: "bool", list: "array", dict: "object"}.get(type(field_value), "number")
            into = f"Go struct field .{key} of type string"
            return f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_type} into {into}"
    return ""


_STATUS = ("v1", "Status")  # every Go scheme registers this kind, although it is never stored


def kind_mismatch(value: Object, resource: Resource, *, is_patched: bool = False) -> str:
    """Return why an object's apiVersion and kind do not fit the built-in kind of the path, or "" if they fit.

    An object after a patch (`is_patched`) that has no apiVersion is of the internal version.
    """
    api_version, kind = value.get("apiVersion") or resource.api_version, value.get("kind") or resource.kind
    if (api_version, kind) == _STATUS:
        if (status := value.get("status")) is not None and not isinstance(status, str):
            json_type = {bool: "bool", list: "array", dict: "object"}.get(type(status), "number")
            return f"json: cannot unmarshal {json_type} into Go struct field Status.status of type string"
        return f"converting (v1.Status) to ({_get_go_package(resource)}.{resource.kind}): unknown conversion"
    if api_version != resource.api_version:
        source_location = "pkg/api/legacyscheme/scheme.go:30"
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{source_location}"'
    if kind != resource.kind:
        if is_patched and not value.get("apiVersion"):
            if f"{api_version}/{kind}" in builtin.table()["roots"]:
                internal = _get_go_package(resource)
                return f"converting ({internal}.{kind}) to ({internal}.{resource.kind}): unknown conversion"
            of = f'the internal version of group "{resource.group}"'
            return f'no kind "{kind}" is registered for {of} in scheme "pkg/api/legacyscheme/scheme.go:30"'
        if f"{api_version}/{kind}" not in builtin.table()["roots"]:
            source_location = "pkg/api/legacyscheme/scheme.go:30"
            return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{source_location}"'
        try:
            codec.decode(builtin.schema_of_kind(resource.group, resource.version, kind), value)
        except codec.DecodeError as error:
            return error.message
        internal = f"{_get_go_package(resource)}.{resource.kind}"
        return f"converting ({resource.version}.{kind}) to ({internal}): unknown conversion"
    return ""


def _get_go_package(resource: Resource) -> str:
    return resource.group.split(".")[0] or "core"
