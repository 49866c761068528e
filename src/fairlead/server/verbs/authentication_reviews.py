"""The handlers of TokenReview, SelfSubjectReview and TokenRequest."""

from functools import cache
from typing import TYPE_CHECKING, Final

from fairlead.api.times import rfc3339
from fairlead.server.authentication.service_account_tokens import InvalidToken
from fairlead.server.errors import field_errors
from fairlead.server.errors.statuses import bad_request, invalid_kind, not_found, status_error
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import builtin
from fairlead.server.verbs import virtual_resources

if TYPE_CHECKING:
    from fairlead.server.app import Server

GROUP: Final = "authentication.k8s.io"
_HOUR: Final = 3600
_SHORTEST, _LONGEST = 600, 2**32
_BINDABLE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def review_token(server: "Server", request: Request, route: Route) -> Response:
    """Return the response to a TokenReview: the user of a token."""
    write, obj = virtual_resources.decode(server, request, route, route.resource)
    spec = obj.get("spec") or {}
    token = spec.get("token")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    status: Object = {"user": {}}
    try:
        verified = server.authenticator.review(token, spec.get("audiences") or server.authenticator.audiences)
    except InvalidToken as reason:
        status["error"] = f"[invalid bearer token, {reason}]"
    else:
        if verified is None:
            status["error"] = "invalid bearer token"
        else:
            user, audiences = verified
            status = {"authenticated": True, "user": user.to_user_info(), "audiences": audiences}
    return virtual_resources.respond(write, {**obj, "status": status})


def review_self(server: "Server", request: Request, route: Route) -> Response:
    """Return the response to a SelfSubjectReview: the user of the request."""
    write, obj = virtual_resources.decode(server, request, route, route.resource, is_tracked=False)
    metadata = {"creationTimestamp": server.now}
    return virtual_resources.respond(
        write, {**obj, "metadata": metadata, "status": {"userInfo": request.user.to_user_info()}}
    )


def request_token(server: "Server", request: Request, route: Route) -> Response:
    """Return the response to a TokenRequest, a POST to the /token subresource of a ServiceAccount: a new token."""
    write, obj = virtual_resources.decode(server, request, route, _build_token_request_resource(), is_complete=False)
    metadata, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    for key, expected in (("name", route.name), ("namespace", route.namespace)):
        if metadata.get(key) and metadata[key] != expected:
            message = f"must match the service account {key} if specified"
            errors = [field_errors.invalid(f"metadata.{key}", metadata[key], message)]
            raise invalid_kind(GROUP, "TokenRequest", route.name, errors)
    stored = server.store.table("", "serviceaccounts").get(route.namespace, route.name)
    if stored is None:
        raise not_found(route.resource, route.name)
    account = stored.object
    uid = account["metadata"]["uid"]
    if metadata.get("uid") and metadata["uid"] != uid:
        problem = (
            f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account ({uid})"
        )
        message = f'Operation cannot be fulfilled on TokenRequest.{GROUP} "{route.name}": {problem}'
        details = {"name": route.name, "group": GROUP, "kind": "TokenRequest"}
        raise status_error(409, "Conflict", message, details)
    audiences, seconds = spec.get("audiences") or server.authenticator.audiences, spec["expirationSeconds"]
    if seconds < _SHORTEST or seconds > _LONGEST:
        limit = "less than 10 minutes" if seconds < _SHORTEST else "larger than 2^32 seconds"
        errors = [field_errors.invalid("spec.expirationSeconds", seconds, f"may not specify a duration {limit}")]
        raise invalid_kind(GROUP, "TokenRequest", "", errors)
    bound = _resolve_bound_object(server, route, spec.get("boundObjectRef"))
    expiry = rfc3339(server.world.clock.now() + seconds)
    own_metadata = {"name": route.name, "namespace": route.namespace, "uid": uid, "creationTimestamp": write.now}
    completed = {
        **obj,
        "metadata": {**own_metadata, "managedFields": metadata.get("managedFields")},
        "spec": {**spec, "audiences": audiences},
    }
    server.admission.validate(virtual_resources.admission_attributes(write, route, completed))
    token = server.service_account_tokens.issue(account, audiences, seconds, bound)
    return virtual_resources.respond(write, {**completed, "status": {"token": token, "expirationTimestamp": expiry}})


def _resolve_bound_object(server: "Server", route: Route, reference: Object | None) -> dict[str, dict[str, str]]:
    """Return name and uid of the object that a token is bound to, by kind, or {} for an unbound token.

    The token is valid only while that object exists.
    """
    if not reference:
        return {}
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    plural = _BINDABLE.get(kind)
    if plural is None or reference.get("apiVersion") != "v1":
        group, _, version = (reference.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    resource = server.registry.find("", "v1", plural)
    assert resource is not None
    stored = server.store.table("", plural).get("" if kind == "Node" else route.namespace, name)
    if stored is None:
        raise not_found(resource, name)
    uid = stored.object["metadata"]["uid"]
    if kind == "Pod" and stored.object["spec"].get("serviceAccountName") != route.name:
        message = (
            f'cannot bind token for serviceaccount "{route.name}" to pod running with different serviceaccount name.'
        )
        raise bad_request(message)
    if reference.get("uid") and reference["uid"] != uid:
        problem = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        message = f'Operation cannot be fulfilled on {kind} "{name}": {problem}'
        raise status_error(409, "Conflict", message, {"name": name, "kind": kind})
    return {kind.lower(): {"name": name, "uid": uid}}


@cache
def _build_token_request_resource() -> Resource:
    return Resource(
        GROUP,
        "v1",
        "TokenRequest",
        "tokenrequests",
        "tokenrequest",
        namespaced=True,
        schema=builtin.schema_of_kind(GROUP, "v1", "TokenRequest"),
        default=_set_default_expiration,
    )


def _set_default_expiration(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    if spec.get("expirationSeconds") is not None:
        return obj
    return {**obj, "spec": {**spec, "expirationSeconds": _HOUR}}
