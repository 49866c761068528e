"""From JSON values to an object of a kind: types checked, unknown fields reported and dropped, defaults filled in."""

from typing import Any

from fairlead.api import gojson
from fairlead.server import bodies, versions
from fairlead.server.causes import Cause
from fairlead.server.exchange import Request
from fairlead.server.failures import bad_request, failure, invalid_named
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec, defaulting, pruning


def read(request: Request, resource: Resource, validation: str) -> Object:
    """The request's body as an object of the kind. Refuses with 400 what is not one."""
    value, duplicates = bodies.read_object(request, resource)
    try:
        obj, unknown = decoded(resource, value)
    except codec.DecodeError as error:
        raise bad_request(f"{_handled(resource, value)}: {error.message}") from None
    problems = _problems(unknown, duplicates)
    if problems and validation == "Strict":
        raise bad_request(f"{_handled(resource, value)}: strict decoding error: {', '.join(problems)}")
    if validation == "Warn":
        for problem in problems:
            request.warn(problem)
    return filled(resource, obj)


def patched(request: Request, resource: Resource, value: Any, validation: str, duplicates: list[str]) -> Object:
    """A patched document as an object of the kind. Refuses with 422 on the field `patch` what is not one."""
    if not isinstance(value, dict):
        raise _invalid_patch(value, "couldn't get version/kind; json parse error")
    if wrong := bodies.untyped(value) or (bodies.foreign(value, resource) if not resource.custom else ""):
        raise _invalid_patch(value, wrong)
    if resource.custom:
        if not value.get("kind"):
            raise _invalid_patch(value, f"Object 'Kind' is missing in '{gojson.dumps(value).decode()}'")
        if not value.get("apiVersion"):
            told = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
            raise failure(500, "InternalError", f"Internal error occurred: {told}", {"causes": [{"message": told}]})
    elif not value.get("kind"):
        value = {**value, "kind": resource.kind}
    try:
        # Without a version a built-in object is read as the internal type, which shares no field with the others.
        nameless = not resource.custom and not value.get("apiVersion")
        obj, unknown = ({}, sorted(value.keys() - {"apiVersion", "kind"})) if nameless else decoded(resource, value)
    except codec.DecodeError as error:
        raise _invalid_patch(value, error.message) from None
    problems = [*duplicates, *_problems(unknown, [])]
    if problems and validation == "Strict":
        raise _invalid_patch(value, f"strict decoding error: {', '.join(problems)}")
    if validation == "Warn":
        for problem in problems:
            request.warn(problem)
    return filled(resource, obj) if obj else obj


def applied(resource: Resource, value: Object) -> Object:
    """An applied object as the kind's type holds it; what does not fit was refused by the merge already.

    Nulls that a merge leaves in a custom resource stay, for validation to refuse.
    """
    try:
        obj = pruning.typed_metadata(value) if resource.custom else decoded(resource, value)[0]
    except codec.DecodeError as error:
        raise bad_request(error.message) from None
    return filled(resource, obj)


def decoded(resource: Resource, value: Object) -> tuple[Object, list[str]]:
    """The object as its type holds it, and the paths of what the type does not have. Raises codec.DecodeError."""
    if resource.custom:
        return pruning.prune(resource.schema, value)
    made = codec.decode(resource.schema, value)
    return made.object, made.unknown


def filled(resource: Resource, obj: Object) -> Object:
    """The object with its kind's defaults."""
    if resource.custom:
        made: Object = defaulting.default(resource.schema, obj)
        return made
    made = resource.default(obj) if resource.default else obj
    # A real server looks at every version by way of an internal one, which may say more.
    return versions.convert(resource, versions.stored_form(resource, made)) if resource.storage else made


def _problems(unknown: list[str], duplicates: list[str]) -> list[str]:
    return [f'unknown field "{path}"' for path in unknown] + [f'duplicate field "{path}"' for path in duplicates]


def _handled(resource: Resource, value: Object) -> str:
    kind = value.get("kind") or resource.kind
    return f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def _invalid_patch(value: Any, message: str) -> Exception:
    shown = gojson.dumps(gojson.dumps(value).decode()).decode()
    return invalid_named("", "", "", [Cause("FieldValueInvalid", "patch", f"Invalid value: {shown}: {message}")])
