"""Paths that are not resources: health, version, metrics, discovery, OpenAPI and OpenID."""

from typing import TYPE_CHECKING

from fairlead.server import discovery, health
from fairlead.server.errors.statuses import method_not_allowed, unknown_path
from fairlead.server.golang import encoding
from fairlead.server.http import negotiation
from fairlead.server.http.messages import AnyResponse, Request, Response
from fairlead.server.registry.resource import Object

if TYPE_CHECKING:
    from fairlead.server.app import Server
    from fairlead.server.registry.lookup import Registry

OPENID_PATHS = {
    "/.well-known/openid-configuration": "application/json",
    "/openid/v1/jwks": "application/jwk-set+json",
}
PAGE_NOT_FOUND = Response(404, b"404 page not found\n", "text/plain; charset=utf-8")


def serve(server: "Server", request: Request) -> AnyResponse:
    """Return the response to a request whose path is not a resource path. Raises StatusError."""
    path, registry = request.path, server.registry
    if (response := health.respond(request)) is not None:
        return response
    if path in OPENID_PATHS and request.method == "GET":
        return _respond_with_token_keys(server, path)
    if path == "/metrics":
        return Response(200, server.metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")
    if path.startswith("/openapi/") and request.method in ("GET", "HEAD"):
        from fairlead.server import openapi

        return openapi.respond(registry, request) or PAGE_NOT_FOUND
    if path == "/":
        return Response(200, encoding.encode(discovery.list_paths(registry)))
    if path.startswith(("//", "/apis//")):
        return PAGE_NOT_FOUND
    path = path.rstrip("/")
    return _respond_with_aggregated_discovery(registry, request, path) or _respond_with_discovery(
        registry, request, path
    )


def _respond_with_token_keys(server: "Server", path: str) -> Response:
    from fairlead.server.authentication import token_discovery, token_keys

    tokens = server.service_account_tokens
    keys = {token_keys.compute_key_id(key): key for key in tokens.public_keys}  # a key may be configured twice
    if path == "/openid/v1/jwks":
        document = token_discovery.build_key_set(list(keys.values()))
    else:
        document = token_discovery.build_configuration(tokens.issuers[0], list(keys.values()))
    response = Response(200, encoding.encode(document), OPENID_PATHS[path])
    response.headers["Cache-Control"] = "public, max-age=3600"
    return response


def _respond_with_aggregated_discovery(registry: "Registry", request: Request, path: str) -> Response | None:
    """Return aggregated discovery if the request is a GET whose Accept header asks for it, else None."""
    version = discovery.parse_aggregated_version(request.headers.get("accept", ""))
    if not version or request.method != "GET":
        return None
    document = discovery.build_aggregated_document(registry, path, version)
    if not document:
        return None
    media_type = f"application/json;g={discovery.AGGREGATED};v={version};as=APIGroupDiscoveryList"
    return Response(200, encoding.encode(document), media_type)


def _respond_with_discovery(registry: "Registry", request: Request, path: str) -> Response:
    is_version = path == "/version"
    document: Object | None = discovery.VERSION if is_version else discovery.find_document(registry, path)
    if document is None:
        segments = path.split("/")
        if len(segments) > 2 and (segments[1] == "version" or _is_in_builtin_group(registry, segments)):
            raise unknown_path()
        return PAGE_NOT_FOUND
    if request.method != "GET" and not discovery.allows_any_method(registry, path):
        raise method_not_allowed()
    is_group_path = path.startswith("/apis") and path.count("/") < 3
    formats = "application/json" if is_version else negotiation.FORMATS
    return negotiation.document_response(request, document, is_group_path=is_group_path, formats=formats)


def _is_in_builtin_group(registry: "Registry", segments: list[str]) -> bool:
    return segments[1] in ("api", "apis") and registry.is_builtin_group("" if segments[1] == "api" else segments[2])
