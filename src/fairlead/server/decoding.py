"""From JSON values to an object of a kind: types checked, unknown fields reported and dropped, defaults filled in."""

from typing import Any

from fairlead.server import bodies
from fairlead.server.exchange import Request
from fairlead.server.failures import bad_request, invalid_named, not_valid
from fairlead.server.registry.resource import Object, Resource


def read(request: Request, resource: Resource, validation: str) -> Object:
    """The request's body as an object of the kind. Refuses with 400 what is not one."""
    value, duplicates = bodies.read_object(request, resource)
    report(request, [f'duplicate field "{path}"' for path in duplicates], validation, resource)
    return shaped(resource, value)


def shaped(resource: Resource, value: Object) -> Object:
    metadata = value.get("metadata")
    if metadata is None:
        return {**value, "metadata": {}}
    if not isinstance(metadata, dict):
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            "json: cannot unmarshal into Go struct field .metadata of type v1.ObjectMeta"
        )
    return value


def patched(request: Request, resource: Resource, value: Any, validation: str) -> Object:
    """A patched document as an object of the kind. Refuses with 422 on the field `patch` what is not one."""
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        cause = not_valid("patch", "...", "json: cannot unmarshal into Go value")
        raise invalid_named("", "", "", [cause])
    return value


def report(request: Request, problems: list[str], validation: str, resource: Resource) -> None:
    """Strict decoding's findings: refused, warned of or passed over."""
    if not problems or validation == "Ignore":
        return
    if validation == "Warn":
        for problem in problems:
            request.warn(problem)
        return
    raise bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        f"strict decoding error: {', '.join(problems)}"
    )
