"""Recognize requests in Python source: which client library a call belongs to, and what it sends."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

LIBRARIES = frozenset({"kopf", "kubernetes", "kubernetes_asyncio", "lightkube", "kr8s", "fairlead", "pykube"})
GENERATED = re.compile(r"^(?P<verb>create|read|list|replace|patch|delete)_(?:namespaced_|cluster_)?(?P<kind>\w+)$")
VERBS = frozenset({"create", "replace", "patch", "delete", "get", "read", "apply"})


@dataclass(slots=True)
class Request:
    """A call that sends a request."""

    call: ast.Call
    verb: str
    body: ast.expr | None
    is_status: bool
    is_merge: bool  # a JSON merge patch: it replaces lists
    is_conditional: bool = False


def uses_a_client(tree: ast.Module) -> bool:
    """Return whether a module imports a Kubernetes library."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        if any(name.partition(".")[0].partition("_operators")[0] in LIBRARIES for name in names):
            return True
    return False


def request_of(call: ast.Call, awaited: set[ast.Call], wrappers: dict[str, str]) -> Request | None:
    """Return the request that a call sends, or None.

    `awaited` are the calls that are awaited. `wrappers` maps methods of this module to the verb that they send.
    """
    if not isinstance(call.func, ast.Attribute):
        return None
    name = call.func.attr
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if name == "create_or_update":
        return Request(call, "create-or-update", call.args[0] if call.args else None, False, False)
    generated = GENERATED.match(name)
    if generated is not None:
        return _generated(call, generated, keywords)
    if name in wrappers:
        return Request(call, wrappers[name], call.args[-1] if call.args else None, False, True)
    verb = "get" if name == "read" else name
    if verb not in VERBS or not _is_client(call, awaited, verb):
        return None
    subresource = keywords.get("subresource")
    is_status = isinstance(subresource, ast.Constant) and subresource.value == "status"
    body = keywords.get("body") or keywords.get("obj") or _body(call, verb)
    kind = keywords.get("type") or keywords.get("patch_type")
    is_merge = kind is not None and _last_name(kind).upper() in ("MERGE", "MERGE_PATCH")
    if kind is None and verb == "patch" and len(call.args) == 1:
        is_merge = True  # kr8s: obj.patch({…}) sends a merge patch
    return Request(call, verb, body, is_status, is_merge, "preconditions" in keywords)


def _generated(call: ast.Call, match: re.Match[str], keywords: dict[str, ast.expr]) -> Request:
    """A method of the official client. It sends merge patches to custom objects, strategic ones to built-in kinds."""
    kind = match["kind"]
    body = keywords.get("body") or (call.args[-1] if call.args else None)
    is_conditional = match["verb"] == "delete" and body is not None and "precondition" in ast.dump(body).lower()
    return Request(call, match["verb"], body, kind.endswith("_status"), "custom_object" in kind, is_conditional)


def _is_client(call: ast.Call, awaited: set[ast.Call], verb: str) -> bool:
    assert isinstance(call.func, ast.Attribute)
    receiver = _last_name(call.func.value).lower()
    if receiver == "ctx":
        return False  # fairlead's guarded writes
    if verb == "get":
        return ("client" in receiver or "api" in receiver) and bool(call.args)
    return call in awaited or "client" in receiver or "api" in receiver or receiver == "unguarded"


def _body(call: ast.Call, verb: str) -> ast.expr | None:
    dictionaries = [arg for arg in call.args if isinstance(arg, ast.Dict)]
    if dictionaries:
        return dictionaries[-1]
    return call.args[-1] if call.args else None


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(_, name):
            return name
        case ast.Call(func):
            return _last_name(func)
        case ast.Constant(value) if isinstance(value, str):
            return value
    return ""


def wrappers_of(tree: ast.Module) -> dict[str, str]:
    """Return the functions of a module that only pass a body on to a merge patch of a custom object."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "patch" in node.name:
            names = {arg.arg for arg in node.args.args}
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    match = GENERATED.match(call.func.attr)
                    is_merge = match is not None and match["verb"] == "patch" and "custom_object" in match["kind"]
                    body = call.args[-1] if call.args else None
                    body = next((k.value for k in call.keywords if k.arg == "body"), body)
                    if (
                        is_merge
                        and isinstance(body, ast.Name)
                        and body.id in names
                        and not call.func.attr.endswith("_status")
                    ):
                        found[node.name] = "patch"
    return found
