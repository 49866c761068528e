"""What the server answers when it refuses: Status objects with the reasons, details and wording clients rely on."""

from collections.abc import Sequence
from typing import Any

from fairlead.server.errors.field_errors import Cause, quoted
from fairlead.server.registry.resource import Object, Resource

OPTIMISTIC_LOCK = "the object has been modified; please apply your changes to the latest version and try again"


class Failure(Exception):
    """A request refused. `status` is the Status object to answer."""

    def __init__(self, status: dict[str, Any]) -> None:
        super().__init__(status.get("message", ""))
        self.status = status

    @property
    def code(self) -> int:
        return int(self.status["code"])


def failure(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> Failure:
    """A Failure; an empty reason and absent details are left out, as the real server leaves them out."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    if message:
        status["message"] = message
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return Failure(status)


def _details(resource: Resource | None, name: str, kind: str | None = None) -> dict[str, Any]:
    if resource is None:
        return {}
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if resource.group:
        details["group"] = resource.group
    details["kind"] = kind or resource.plural
    return details


def group_kind(resource: Resource) -> str:
    """As validation errors name it: ConfigMap, Deployment.apps."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def bad_request(message: str) -> Failure:
    return failure(400, "BadRequest", message)


def not_found(resource: Resource, name: str) -> Failure:
    return failure(404, "NotFound", f"{resource.group_resource} {quoted(name)} not found", _details(resource, name))


def unknown_path() -> Failure:
    return failure(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed(resource: Resource | None = None) -> Failure:
    """Built-in kinds say nothing in details; a custom resource's subresource names itself (see `unsupported`)."""
    message = "the server does not allow this method on the requested resource"
    return failure(405, "MethodNotAllowed", message, {})


def unsupported(resource: Resource, verb: str) -> Failure:
    details = {"group": resource.group, "kind": resource.plural} if resource.group else {"kind": resource.plural}
    message = f'{verb} is not supported on resources of kind "{resource.group_resource}"'
    return failure(405, "MethodNotAllowed", message, details)


def already_exists(resource: Resource, name: str) -> Failure:
    return failure(409, "AlreadyExists", f'{resource.group_resource} "{name}" already exists', _details(resource, name))


def being_deleted(resource: Resource, name: str) -> Failure:
    message = f'object is being deleted: {resource.group_resource} "{name}" already exists'
    return failure(409, "AlreadyExists", message, _details(resource, name))


def conflict(resource: Resource, name: str, message: str, *, by_kind: bool = False) -> Failure:
    """A precondition that failed. Deletes name the kind, other writes the plural."""
    called = group_kind(resource) if by_kind else resource.group_resource
    text = f'Operation cannot be fulfilled on {called} "{name}": {message}'
    return failure(409, "Conflict", text, _details(resource, name, resource.kind if by_kind else None))


def forbidden(resource: Resource, name: str, message: str, causes: Sequence[Cause] = ()) -> Failure:
    details = _details(resource, name)
    if causes:
        details["causes"] = [as_cause(c) for c in causes]
    text = (
        f'{resource.group_resource} "{name}" is forbidden: {message}'
        if name
        else f"{resource.group_resource} is forbidden: {message}"
    )
    return failure(403, "Forbidden", text, details)


def as_cause(cause: Cause) -> dict[str, str]:
    return {"reason": cause.reason, "message": cause.message, "field": cause.field}


def joined(causes: Sequence[Cause]) -> str:
    """Field errors as one text; repeated ones are said once, several stand in brackets."""
    texts = list(dict.fromkeys(f"{c.field}: {c.message}" for c in causes))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def invalid_named(group: str, kind: str, name: str, causes: Sequence[Cause]) -> Failure:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    if causes:
        details["causes"] = [as_cause(c) for c in causes]
    called = f"{kind}.{group}" if group else kind
    text = f'{called} "{name}" is invalid'
    if causes:
        text += f": {joined(causes)}"
    return failure(422, "Invalid", text, details)


def invalid(resource: Resource, obj: Object, causes: Sequence[Cause]) -> Failure:
    """The object is refused for these fields. It is called what it calls itself."""
    if resource.storage is not None and not resource.custom:
        resource = resource.storage  # one kind of two groups goes by the name of the one that keeps it
        group = resource.group
    else:
        group, _, _ = (obj.get("apiVersion") or resource.api_version).rpartition("/")
    return invalid_named(group, obj.get("kind") or resource.kind, obj["metadata"].get("name") or "", causes)


def rejected_patch(resource: Resource, name: str) -> Failure:
    """A JSON patch that could not be applied, a failed `test` included: no cause is given."""
    message = "the server rejected our request due to an error in our request"
    return failure(422, "Invalid", message, {})


def bare(message: str) -> Failure:
    """What the real server answers to an error it never classified: a 500 without a reason. Never transient."""
    return failure(500, "", message)


def internal(error: Exception) -> Failure:
    """A fault of this server, told as one."""
    return internal_text(f"{type(error).__name__}: {error}")


def internal_text(text: str) -> Failure:
    return failure(500, "InternalError", f"Internal error occurred: {text}", {"causes": [{"message": text}]})


def expired(message: str) -> Failure:
    return failure(410, "Expired", message)


def unauthorized() -> Failure:
    return failure(401, "Unauthorized", "Unauthorized")


def unsupported_media_type(message: str) -> Failure:
    return failure(415, "UnsupportedMediaType", message)


def too_large(message: str) -> Failure:
    return failure(413, "RequestEntityTooLarge", message)
