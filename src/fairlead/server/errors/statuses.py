"""Functions that build error responses: Status objects with the reasons, details and messages of a real server."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairlead.api.gojson import quote_go
from fairlead.server.errors.field_errors import FieldError

if TYPE_CHECKING:
    from fairlead.server.registry.resource import Resource

OPTIMISTIC_LOCK = "the object has been modified; please apply your changes to the latest version and try again"


class StatusError(Exception):
    """Raised to reject a request. `status` is the Status object that the server responds with."""

    def __init__(self, status: dict[str, Any]) -> None:
        super().__init__(status.get("message", ""))
        self.status = status

    @property
    def code(self) -> int:
        return int(self.status["code"])


def status_error(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> StatusError:
    """Build a StatusError. As on a real server, its Status omits an empty reason and absent details."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    if message:
        status["message"] = message
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return StatusError(status)


def _build_details(resource: "Resource | None", name: str, kind: str | None = None) -> dict[str, Any]:
    if resource is None:
        return {}
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if resource.group:
        details["group"] = resource.group
    details["kind"] = kind or resource.plural
    return details


def group_kind(resource: "Resource") -> str:
    """Return kind and group as validation errors name them: `ConfigMap`, `Deployment.apps`."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def bad_request(message: str) -> StatusError:
    return status_error(400, "BadRequest", message)


def not_found(resource: "Resource", name: str) -> StatusError:
    return status_error(
        404, "NotFound", f"{resource.group_resource} {quote_go(name)} not found", _build_details(resource, name)
    )


def unknown_path() -> StatusError:
    return status_error(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed(resource: "Resource | None" = None) -> StatusError:
    """Build the 405 for built-in kinds, with empty details. For custom resources see `method_not_supported`."""
    message = "the server does not allow this method on the requested resource"
    return status_error(405, "MethodNotAllowed", message, {})


def method_not_supported(resource: "Resource", verb: str) -> StatusError:
    """Build the 405 for custom resources, whose message names the verb and the resource."""
    details = {"group": resource.group, "kind": resource.plural} if resource.group else {"kind": resource.plural}
    message = f'{verb} is not supported on resources of kind "{resource.group_resource}"'
    return status_error(405, "MethodNotAllowed", message, details)


def already_exists(resource: "Resource", name: str) -> StatusError:
    return status_error(
        409, "AlreadyExists", f'{resource.group_resource} "{name}" already exists', _build_details(resource, name)
    )


def being_deleted(resource: "Resource", name: str) -> StatusError:
    message = f'object is being deleted: {resource.group_resource} "{name}" already exists'
    return status_error(409, "AlreadyExists", message, _build_details(resource, name))


def conflict(resource: "Resource", name: str, message: str, *, names_kind: bool = False) -> StatusError:
    """Build the 409 for a failed precondition.

    `names_kind`: the message names the kind, as for a delete, not the plural.
    """
    resource_name = group_kind(resource) if names_kind else resource.group_resource
    conflict_message = f'Operation cannot be fulfilled on {resource_name} "{name}": {message}'
    return status_error(
        409, "Conflict", conflict_message, _build_details(resource, name, resource.kind if names_kind else None)
    )


def forbidden(resource: "Resource", name: str, message: str, errors: Sequence[FieldError] = ()) -> StatusError:
    details = _build_details(resource, name)
    if errors:
        details["causes"] = [to_status_cause(error) for error in errors]
    full_message = (
        f'{resource.group_resource} "{name}" is forbidden: {message}'
        if name
        else f"{resource.group_resource} is forbidden: {message}"
    )
    return status_error(403, "Forbidden", full_message, details)


def to_status_cause(error: FieldError) -> dict[str, str]:
    return {"reason": error.reason, "message": error.message, "field": error.field}


def join_errors(errors: Sequence[FieldError]) -> str:
    """Return field errors as one text, without duplicates, and in brackets if there are several."""
    texts = list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def invalid_kind(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    if errors:
        details["causes"] = [to_status_cause(error) for error in errors]
    group_kind = f"{kind}.{group}" if group else kind
    full_message = f'{group_kind} "{name}" is invalid'
    if errors:
        full_message += f": {join_errors(errors)}"
    return status_error(422, "Invalid", full_message, details)


def invalid(resource: "Resource", obj: dict[str, Any], errors: Sequence[FieldError]) -> StatusError:
    """Build the 422 for an invalid object. Its message names the kind and group that the object itself specifies."""
    if resource.storage is not None and not resource.custom:
        resource = resource.storage  # a kind of two groups (Event) is named by its storage group
        group = resource.group
    else:
        group, _, _ = (obj.get("apiVersion") or resource.api_version).rpartition("/")
    return invalid_kind(group, obj.get("kind") or resource.kind, obj["metadata"].get("name") or "", errors)


def rejected_patch(resource: "Resource", name: str) -> StatusError:
    """Build the 422 for a JSON patch that cannot be applied, for example because a `test` failed. It has no causes."""
    message = "the server rejected our request due to an error in our request"
    return status_error(422, "Invalid", message, {})


def unclassified(message: str) -> StatusError:
    """Build a 500 without a reason, as a real server sends for an error it does not classify.

    Retrying does not help.
    """
    return status_error(500, "", message)


def internal_error(error: Exception) -> StatusError:
    """Build the 500 for an unexpected exception in this server."""
    return internal_error_message(f"{type(error).__name__}: {error}")


def internal_error_message(message: str) -> StatusError:
    return status_error(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def expired(message: str) -> StatusError:
    return status_error(410, "Expired", message)


def unauthorized() -> StatusError:
    return status_error(401, "Unauthorized", "Unauthorized")


def unsupported_media_type(message: str) -> StatusError:
    return status_error(415, "UnsupportedMediaType", message)


def too_large(message: str) -> StatusError:
    return status_error(413, "RequestEntityTooLarge", message)
