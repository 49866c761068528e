"""The paths of a kind: which operations there are and what each takes and answers."""

from dataclasses import dataclass
from typing import Any, Final

from fairlead.server.registry.resource import Resource

Item = dict[str, Any]
_WRITES: Final = ("dryRun", "fieldManager", "fieldValidation")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
    "application/apply-patch+yaml",
)


@dataclass(frozen=True, slots=True)
class Style:
    """Which OpenAPI: where references point to, and whether it is the older one."""

    place: str
    v2: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A kind, a reference to its schema, and its group, version and kind as extensions name them."""

    resource: Resource
    schema: Item
    kind: dict[str, str]


def path_items(place: Place, style: Style) -> dict[str, Item]:
    """The paths of the collection and of one object."""
    resource = place.resource
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    collection = f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else ""
    collection = collection or f"{base}/{resource.plural}"
    verbs = set(resource.verbs)
    above: Item = {}
    if "list" in verbs:
        above["get"] = _operation(place, style, "list", ())
    if "create" in verbs:
        above["post"] = _operation(place, style, "post", _WRITES, body=True)
    one: Item = {}
    for verb, method, words in (
        ("get", "get", ()),
        ("update", "put", _WRITES),
        ("patch", "patch", (*_WRITES, "force")),
        ("delete", "delete", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
    ):
        if verb in verbs:
            one[method] = _operation(place, style, method, words, body=method == "put", patch=method == "patch")
    in_path = ["namespace"] if resource.namespaced else []
    found = {collection: {**above, **_parameters_of(in_path, style)}}
    if one:
        found[f"{collection}/{{name}}"] = {**one, **_parameters_of(["name", *in_path], style)}
    return found


def _parameters_of(names: list[str], style: Style) -> Item:
    if not names:
        return {}
    return {"parameters": [_parameter(name, "path", style) | {"required": True} for name in names]}


def _operation(
    place: Place, style: Style, action: str, words: tuple[str, ...], *, body: bool = False, patch: bool = False
) -> Item:
    resource = place.resource
    patches = [media for media in _PATCHES if not (resource.custom and media == _STRATEGIC)]
    parameters = [_parameter(word, "query", style) for word in words]
    operation: Item = {
        "operationId": f"{action}{resource.group.replace('.', '')}{resource.version}{resource.kind}",
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": place.kind,
    }
    if style.v2:
        if body or patch:
            schema = place.schema if body else {"type": "object"}
            parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
        operation["consumes"] = patches if patch else ["*/*"]
        operation["produces"] = ["application/json", "application/yaml"]
        operation["responses"] = {"200": {"description": "OK", "schema": place.schema}}
    else:
        if body:
            operation["requestBody"] = {"content": {"*/*": {"schema": place.schema}}, "required": True}
        elif patch:
            content = {media: {"schema": {"type": "object"}} for media in patches}
            operation["requestBody"] = {"content": content, "required": True}
        content = {media: {"schema": place.schema} for media in ("application/json", "application/yaml")}
        operation["responses"] = {"200": {"description": "OK", "content": content}}
    if parameters:
        operation["parameters"] = parameters
    return operation


def _parameter(name: str, where: str, style: Style) -> Item:
    kind = {"force": "boolean", "gracePeriodSeconds": "integer"}.get(name, "string")
    made: Item = {"name": name, "in": where}
    return {**made, "type": kind} if style.v2 else {**made, "schema": {"type": kind, "uniqueItems": True}}
