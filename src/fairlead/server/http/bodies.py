"""Request bodies: which formats are taken, and how a body becomes an object of the kind that the path names."""

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
    if len(body) > encoding.MAX_BODY:
        raise too_large(f"Request entity too large: limit is {encoding.MAX_BODY}")


def media_type(request: Request) -> str:
    """json, yaml or protobuf. Anything else is refused."""
    given = request.media_type
    if given in ("", "application/json"):
        return "json"
    if given == "application/yaml":
        return "yaml"
    if given == protobuf.MEDIA_TYPE:
        return "protobuf"
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}"
    )


def read_value(request: Request, api_version: str = "", kind: str = "") -> tuple[Any, list[str]]:
    """The body's value and its duplicate keys: their paths, or of YAML a line for each.

    Raises encoding.BadJSON, or protobuf.ProtoError. Protobuf cannot be read without knowing what it is:
    `api_version` and `kind`, where it does not say itself.
    """
    check_size(request.body)
    media = media_type(request)
    if media == "yaml":
        from fairlead.server.golang import yaml

        return yaml.read(request.body)
    if media == "protobuf":
        return protobuf.unwrap(request.body, api_version, kind).object(), []
    return encoding.decode(request.body)


def read_plain(request: Request, api_version: str, kind: str) -> Any:
    """The value of a body that stands for no object of its own: options, an eviction. Refuses with 400."""
    try:
        return read_value(request, api_version, kind)[0]
    except protobuf.ProtoError as error:
        raise bad_request(str(error)) from None
    except encoding.BadJSON as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def summary(body: bytes) -> str:
    """The start of a body, as decode errors show it."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > 30 else ""
    head = body[:30]
    return (head.decode("utf-8", "replace") if body[:1] == b"{" else head.hex()) + more


_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def no_object(value: Any) -> str:
    """Why a JSON value that is no map is no object."""
    problem = f"json: cannot unmarshal {encoding.json_type_name(value)} into Go value of type {_TYPE_META}"
    return f"couldn't get version/kind; json parse error: {problem}"


def unrecognized(resource: Resource, body: bytes, message: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): {message} ({summary(body)})"
    )


def read_object(request: Request, resource: Resource) -> tuple[Object, list[str]]:
    """The body as an object that claims the path's kind, and its duplicate keys. The rest is not looked at yet."""
    if media_type(request) == "protobuf":
        return _read_message(request, resource), []
    try:
        value, duplicates = read_value(request)
    except encoding.BadJSON as error:
        problem = str(error)
        if isinstance(error, encoding.NumberTooLarge) and resource.custom:
            raise _not_handled(resource.kind, resource.api_version, resource, problem) from None
        if media_type(request) == "yaml":
            problem = problem.removeprefix("error converting YAML to JSON: ")
        else:
            problem = f"couldn't get version/kind; json parse error: {problem}"
        raise unrecognized(resource, request.body, problem) from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise unrecognized(resource, request.body, no_object(value))
    if resource.custom and (unknown := [f'unknown field "{path}"' for path in _unknown_elsewhere(value, resource)]):
        if request.first("fieldValidation") == "Strict":
            told = ", ".join([*unknown, *[f'duplicate field "{path}"' for path in duplicates]])
            raise _not_handled(value["kind"], value["apiVersion"], resource, f"strict decoding error: {told}")
        for problem in unknown if request.first("fieldValidation") in ("", "Warn") else ():
            request.warn(problem)
    return claim(value, resource, request.body), duplicates


def _unknown_elsewhere(value: Object, resource: Resource) -> list[str]:
    """What an object that claims another version of the kind than the path's has beyond that version's schema."""
    api_version = value.get("apiVersion")
    if value.get("kind") != resource.kind or not isinstance(api_version, str):
        return []
    if api_version in ("", resource.api_version):
        return []
    schema = versions.schema(resource, api_version)
    if schema is None:  # of a version that is not defined, nothing is known
        return sorted(value.keys() - {"apiVersion", "kind", "metadata"})
    try:
        return pruning.prune(schema, value)[1]
    except codec.DecodeError:
        return []


def _read_message(request: Request, resource: Resource) -> Object:
    if resource.custom:  # a real server breaks the connection
        raise unsupported_media_type("custom resources have no protobuf form: send application/json")
    check_size(request.body)
    try:
        said = protobuf.unwrap(request.body, resource.api_version, resource.kind)
    except protobuf.ProtoError as error:
        raise unrecognized(resource, request.body, str(error)) from None
    try:
        value = said.object()
    except protobuf.ProtoError as error:
        raise _not_handled(said.kind, said.api_version, resource, str(error)) from None
    return claim(value, resource, request.body)


def _not_handled(kind: str, api_version: str, resource: Resource, why: str) -> StatusError:
    version = api_version.rpartition("/")[2]
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {why}')


def claim(value: Object, resource: Resource, body: bytes) -> Object:
    """Check kind and apiVersion against the path's; built-in kinds may leave them out."""
    if problem := untyped(value):
        raise unrecognized(resource, body, problem)
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if resource.custom:
        if not kind:
            raise unrecognized(resource, body, f"Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'")
        if not api_version:
            raise unrecognized(
                resource, body, "Object 'apiVersion' is missing in '" + body.decode("utf-8", "replace") + "'"
            )
        if api_version != resource.api_version:
            raise bad_request(
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        return value
    if wrong := foreign(value, resource):
        why = _undecodable(value) or wrong
        raise _not_handled(kind or resource.kind, api_version or resource.api_version, resource, why)
    if api_version and kind:
        return value
    return {**value, "apiVersion": resource.api_version, "kind": resource.kind}


def _undecodable(value: Object) -> str:
    """Why an object is not even of the built-in kind that it claims; empty where it is, or claims none."""
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if f"{api_version}/{kind}" not in builtin.table()["roots"]:
        return ""
    group, _, version = api_version.rpartition("/")
    try:
        codec.decode(builtin.schema_of_kind(group, version, kind), value)
    except codec.DecodeError as error:
        return error.message
    return ""


def untyped(value: Object) -> str:
    """Why an object does not say what it is although it tries; empty where it does, or says nothing."""
    for key in ("apiVersion", "kind"):
        given = value.get(key)
        if given is not None and not isinstance(given, str):
            shown = {bool: "bool", list: "array", dict: "object"}.get(type(given), "number")
            into = f"Go struct field .{key} of type string"
            return f"couldn't get version/kind; json parse error: json: cannot unmarshal {shown} into {into}"
    return ""


_EVERYWHERE = ("v1", "Status")  # the one stored-nowhere kind that every scheme registers


def foreign(value: Object, resource: Resource, *, patched: bool = False) -> str:
    """Why an object that says what it is cannot be of this built-in kind; empty where it can.

    What is `patched` and says no version is taken for an object of the internal one.
    """
    api_version, kind = value.get("apiVersion") or resource.api_version, value.get("kind") or resource.kind
    if (api_version, kind) == _EVERYWHERE:
        if (status := value.get("status")) is not None and not isinstance(status, str):
            shown = {bool: "bool", list: "array", dict: "object"}.get(type(status), "number")
            return f"json: cannot unmarshal {shown} into Go struct field Status.status of type string"
        return f"converting (v1.Status) to ({_internal(resource)}.{resource.kind}): unknown conversion"
    if api_version != resource.api_version:
        where = "pkg/api/legacyscheme/scheme.go:30"
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{where}"'
    if kind != resource.kind:
        if patched and not value.get("apiVersion"):
            if f"{api_version}/{kind}" in builtin.table()["roots"]:
                internal = _internal(resource)
                return f"converting ({internal}.{kind}) to ({internal}.{resource.kind}): unknown conversion"
            of = f'the internal version of group "{resource.group}"'
            return f'no kind "{kind}" is registered for {of} in scheme "pkg/api/legacyscheme/scheme.go:30"'
        if f"{api_version}/{kind}" not in builtin.table()["roots"]:
            where = "pkg/api/legacyscheme/scheme.go:30"
            return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{where}"'
        try:
            codec.decode(builtin.schema_of_kind(resource.group, resource.version, kind), value)
        except codec.DecodeError as error:
            return error.message
        return f"converting ({resource.version}.{kind}) to ({_internal(resource)}.{resource.kind}): unknown conversion"
    return ""


def _internal(resource: Resource) -> str:
    return resource.group.split(".")[0] or "core"
