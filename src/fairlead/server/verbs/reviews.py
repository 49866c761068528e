"""Reviews: kinds that are only ever created, to ask the server something. Nothing of them is stored."""

import base64
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from fairlead.api.times import rfc3339
from fairlead.server import causes, decoding, encoding, pipeline
from fairlead.server.causes import Cause
from fairlead.server.exchange import Request, Response
from fairlead.server.failures import bad_request, invalid_named, method_not_allowed, not_found
from fairlead.server.options import write_options
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.routing import Route, Target
from fairlead.server.schema import builtin

if TYPE_CHECKING:
    from fairlead.server.app import Server

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
ADMIN = {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]}
AUDIENCE = "https://kubernetes.default.svc"
RBAC = "rbac.authorization.k8s.io"


@cache
def _resources() -> dict[tuple[str, str], Resource]:
    found = {}
    for group in (AUTHORIZATION, AUTHENTICATION):
        for fact in builtin.table()["kinds"][f"{group}/v1"]:
            schema = builtin.node(group, "v1", fact["kind"])
            resource = Resource(
                group, "v1", fact["kind"], fact["name"], fact["singularName"], fact["namespaced"], schema
            )
            found[group, fact["name"]] = resource
    return found


def route(target: Target, method: str) -> Route | None:
    """The route of a review, or None where the path is of another kind."""
    resource = _resources().get((target.group, target.plural))
    if resource is None or target.version != "v1":
        return None
    if method != "POST":
        raise method_not_allowed()
    return Route(resource, "review", target.namespace, "", "")


def review(server: "Server", request: Request, route: Route) -> Response:
    """Answer a review."""
    resource = route.resource
    options = write_options(request, "CreateOptions")
    obj = decoding.read(request, resource, options.validation)
    write = pipeline.Write(server, request, resource, route.namespace, "", "", options)
    obj = pipeline.expect_namespace(obj, write)
    if resource.kind == "SelfSubjectReview":
        created = {"metadata": {"creationTimestamp": server.now}, "status": {"userInfo": ADMIN}}
        return Response(201, encoding.encode({**obj, **created}))
    obj = server.tracking.created(write, obj)
    spec = obj.get("spec") or {}
    if resource.kind == "TokenReview":
        known = server.knows(spec.get("token") or "")
        status: Object = {"authenticated": True, "user": ADMIN} if known else {"authenticated": False, "user": {}}
    elif resource.kind == "SelfSubjectRulesReview":
        if not spec.get("namespace"):
            raise bad_request("no namespace on request")
        everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
        status = {"resourceRules": everything, "nonResourceRules": paths, "incomplete": False}
    else:
        status = _access(server, resource, obj, spec)
    return Response(201, encoding.encode({**obj, "status": status}), warnings=request.warnings)


def _access(server: "Server", resource: Resource, obj: Object, spec: Object) -> Object:
    found: list[Cause] = []
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if asked is not None and path is not None:
        shown = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        message = "cannot be specified in combination with resourceAttributes"
        found.append(causes.invalid("spec.nonResourceAttributes", shown, message))
    if asked is None and path is None:
        message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        found.append(causes.invalid("spec.resourceAttributes", None, message))
    itself = resource.kind == "SelfSubjectAccessReview"
    if not itself and not spec.get("user") and not spec.get("groups"):
        found.append(causes.invalid("spec.user", "", "at least one of user or group must be specified"))
    if any(key not in ("managedFields", "namespace") for key in obj["metadata"]):
        found.append(causes.invalid("metadata", obj["metadata"], "must be empty"))
    if found:
        raise invalid_named(AUTHORIZATION, "", "", found)
    if itself:
        return {"allowed": True}
    reason = _allowed(server, spec.get("user") or "", spec.get("groups") or [], asked, path)
    return {"allowed": False} if reason is None else {"allowed": True, **({"reason": reason} if reason else {})}


def _allowed(server: "Server", user: str, groups: list[str], asked: Object | None, path: Object | None) -> str | None:
    """Why RBAC allows a request; None where it does not."""
    if "system:masters" in groups:
        return ""
    for binding, namespace in _bindings(server, (asked or {}).get("namespace") or ""):
        subject = next((s for s in binding.get("subjects") or () if _is(s, user, groups, namespace)), None)
        if subject is None:
            continue
        role = binding["roleRef"]
        if any(_covers(rule, asked, path) for rule in _rules(server, role, namespace)):
            name = binding["metadata"]["name"] + (f"/{namespace}" if namespace else "")
            kind = f"{binding['kind']} {causes.quoted(name)} of {role['kind']} {causes.quoted(role['name'])}"
            return f"RBAC: allowed by {kind} to {subject['kind']} {causes.quoted(subject['name'])}"
    return None


def _bindings(server: "Server", namespace: str) -> Iterator[tuple[Object, str]]:
    for _, stored in server.store.table(RBAC, "clusterrolebindings").scan(None):
        yield stored.object, ""
    if namespace:
        for _, stored in server.store.table(RBAC, "rolebindings").scan(namespace):
            yield stored.object, namespace


def _is(subject: Object, user: str, groups: list[str], namespace: str) -> bool:
    if subject["kind"] == "ServiceAccount":
        return user == f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject['name']}"
    return subject["name"] in groups if subject["kind"] == "Group" else subject["name"] in (user, "*")


def _rules(server: "Server", role: Object, namespace: str) -> list[Object]:
    plural, space = ("roles", namespace) if role["kind"] == "Role" else ("clusterroles", "")
    stored = server.store.table(RBAC, plural).get(space, role["name"])
    return (stored.object.get("rules") or []) if stored else []


def _covers(rule: Object, asked: Object | None, path: Object | None) -> bool:
    def has(key: str, wanted: str) -> bool:
        return any(item in ("*", wanted) for item in rule.get(key) or ())

    if asked is not None:
        plural = asked.get("resource") or ""
        if asked.get("subresource"):
            plural += f"/{asked['subresource']}"
        names = rule.get("resourceNames") or []
        if names and asked.get("name") not in names:
            return False
        return (
            has("verbs", asked.get("verb") or "")
            and has("apiGroups", asked.get("group") or "")
            and has("resources", plural)
        )
    wanted = (path or {}).get("path") or ""
    urls = rule.get("nonResourceURLs") or ()
    fits = any(u == wanted or (u.endswith("*") and wanted.startswith(u[:-1])) for u in urls)
    return fits and has("verbs", (path or {}).get("verb") or "")


def request_token(server: "Server", request: Request, route: Route) -> Response:
    """A token for a ServiceAccount. It has the right shape; this server takes only the tokens it was started with."""
    account = server.store.table("", "serviceaccounts").get(route.namespace, route.name)
    if account is None:
        raise not_found(route.resource, route.name)
    schema = builtin.node(AUTHENTICATION, "v1", "TokenRequest")
    resource = Resource(AUTHENTICATION, "v1", "TokenRequest", "tokenrequests", "tokenrequest", True, schema)
    options = write_options(request, "CreateOptions")
    obj = decoding.read(request, resource, options.validation)
    given = obj.get("spec") or {}
    lifetime = given.get("expirationSeconds") or 3600
    obj = {**obj, "spec": {**given, "expirationSeconds": lifetime}}
    write = pipeline.Write(server, request, resource, route.namespace, route.name, "token", options)
    obj = server.tracking.created(write, obj)
    metadata = account.object["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "uid")}
    expires = request.time + lifetime
    audiences = given.get("audiences") or [AUDIENCE]
    claims = {"aud": audiences, "exp": int(expires), "sub": f"system:serviceaccount:{route.namespace}:{route.name}"}
    answer = {
        **obj,
        "metadata": {**obj["metadata"], **kept, "creationTimestamp": server.now},
        "spec": {"audiences": audiences, "expirationSeconds": lifetime, "boundObjectRef": given.get("boundObjectRef")},
        "status": {
            "token": _token(claims, server.world.random.getrandbits(256)),
            "expirationTimestamp": rfc3339(expires),
        },
    }
    return Response(201, encoding.encode(answer), warnings=request.warnings)


def _token(claims: dict[str, Any], secret: int) -> str:
    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    text = ".".join(part(json.dumps(value).encode()) for value in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{text}.{part(hashlib.sha256(f'{secret}{text}'.encode()).digest())}"
