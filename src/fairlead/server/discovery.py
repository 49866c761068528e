"""Discovery documents: the served groups, versions and kinds, as separate lists and in the aggregated (v2) format."""

import base64
import hashlib
import re
from functools import cache
from typing import Any

from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import builtin

CUSTOM_VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
SUBRESOURCE_VERBS = ["get", "patch", "update"]
AGGREGATED = "apidiscovery.k8s.io"
VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.4",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
_KUBE_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?\Z")
Document = dict[str, Any]


def version_priority(version: str) -> tuple[int, ...] | tuple[int, str]:
    """Return a sort key for API versions: v2, v1, v1beta1, v1alpha1, then names that are not Kubernetes versions."""
    match = _KUBE_VERSION.match(version)
    if match is None:
        return (3, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0))


def find_document(registry: Registry, path: str) -> Document | None:
    """Return the discovery document at a path such as /apis/apps/v1, or None if the path has no document."""
    segments = path.strip("/").split("/")
    if path == "/api":
        return _build_api_versions()
    if path == "/apis":
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_build_group(g, v) for g, v in _list_groups(registry)],
        }
    if segments[0] == "api" and len(segments) == 2 and segments[1] == "v1":
        return _build_resource_list(registry, "", "v1")
    if segments[0] != "apis" or len(segments) not in (2, 3):
        return None
    versions = dict(_list_groups(registry)).get(segments[1])
    if versions is None or (len(segments) == 3 and segments[2] not in versions):
        return None
    if len(segments) == 2:
        return {"kind": "APIGroup", "apiVersion": "v1", **_build_group(segments[1], versions)}
    return _build_resource_list(registry, segments[1], segments[2])


def allows_any_method(registry: Registry, path: str) -> bool:
    """Return whether the server answers every HTTP method at a discovery path, not only GET.

    True for /apis, for every group, and for the versions of custom groups.
    """
    return path == "/apis" or (path.startswith("/apis/") and (path.count("/") == 2 or _is_custom(registry, path)))


def _is_custom(registry: Registry, path: str) -> bool:
    group = path.split("/")[2]
    return any(resource.group == group for resource in registry.custom())


def list_paths(registry: Registry) -> Document:
    """Return the document at /, which lists the paths that a client can read."""
    groups = [
        f"/apis/{name}{suffix}"
        for name, versions in _list_groups(registry)
        for suffix in ("", *(f"/{version}" for version in versions))
    ]
    health = [f"/{name}{check}" for name in ("healthz", "livez", "readyz") for check in ("", "/ping")]
    fixed = ["/api", "/api/v1", "/apis", "/apis/", "/metrics", "/openapi/v2", "/openapi/v3", "/version"]
    return {"paths": sorted(groups + health + fixed)}


def _build_api_versions() -> Document:
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:443"}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}


@cache
def _list_builtin_groups() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((group["name"], tuple(group["versions"])) for group in builtin.table()["groups"])


def _list_groups(registry: Registry) -> list[tuple[str, list[str]]]:
    """Return every group except the core group, each with its versions in order of preference."""
    groups = {name: list(versions) for name, versions in _list_builtin_groups()}
    custom: dict[str, set[str]] = {}
    for resource in registry.custom():
        custom.setdefault(resource.group, set()).add(resource.version)
    for name in sorted(custom):
        groups.setdefault(name, []).extend(sorted(custom[name], key=version_priority))
    return list(groups.items())


def _build_group(name: str, versions: list[str]) -> Document:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _build_resource_list(registry: Registry, group: str, version: str) -> Document:
    api_version = f"{group}/{version}" if group else version
    listed = list(builtin.table()["kinds"].get(api_version, ()))
    for resource in registry.custom():
        if (resource.group, resource.version) == (group, version):
            listed += build_custom_entries(resource, registry)
    document: Document = {"kind": "APIResourceList", "groupVersion": api_version, "resources": listed}
    return {**document, "apiVersion": "v1"} if group else document


def build_custom_entries(resource: Resource, registry: Registry) -> list[Document]:
    """Return the APIResourceList entries of a custom kind and of its subresources."""
    stored = registry.storage(resource.group, resource.plural) or resource
    entry: Document = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": CUSTOM_VERBS,
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    entry["storageVersionHash"] = compute_storage_version_hash(stored)
    common = {"singularName": "", "namespaced": resource.namespaced, "verbs": SUBRESOURCE_VERBS}
    entries = [entry]
    if resource.has_status:
        entries.append({"name": f"{resource.plural}/status", "kind": resource.kind, **common})
    if resource.scale:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        entries.append({"name": f"{resource.plural}/scale", **scale, **common})
    return entries


def compute_storage_version_hash(stored: Resource) -> str:
    """Return the storageVersionHash of a kind in discovery, as a real server computes it."""
    digest = hashlib.sha256(f"{stored.group}/{stored.version}/{stored.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def parse_aggregated_version(accept: str) -> str:
    """Return "v2" if an Accept header asks for aggregated discovery, else "". The version v2beta1 is not served."""
    for clause in accept.split(","):
        parts = {part.strip() for part in clause.split(";")}
        if {f"g={AGGREGATED}", "v=v2", "as=APIGroupDiscoveryList"} <= parts:
            return "v2"
    return ""


def build_aggregated_document(registry: Registry, path: str, version: str) -> Document | None:
    """Return the aggregated discovery document of /api or /apis, or None for any other path."""
    if path == "/api":
        groups = [("", ["v1"])]
    elif path == "/apis":
        groups = _list_groups(registry)
    else:
        return None
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": v,
                    "resources": _nest_subresources(registry, name, v),
                    "freshness": "Current",
                }
                for v in versions
            ],
        }
        for name, versions in groups
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": f"{AGGREGATED}/{version}", "metadata": {}, "items": items}


def _nest_subresources(registry: Registry, group: str, version: str) -> list[Document]:
    """Return the resources of a group version in the aggregated format, where each one contains its subresources."""
    # A built-in kind does not name its own group.
    default = ("", "") if registry.is_builtin_group(group) else (group, version)
    resources: dict[str, Document] = {}
    for entry in _build_resource_list(registry, group, version)["resources"]:
        name, _, subresource = entry["name"].partition("/")
        kind = {
            "group": entry.get("group", default[0]),
            "version": entry.get("version", default[1]),
            "kind": entry["kind"],
        }
        if subresource:
            parent = resources.setdefault(name, {"resource": name, "scope": _get_scope_name(entry), "verbs": []})
            nested = {"subresource": subresource, "responseKind": kind, "verbs": entry["verbs"]}
            parent.setdefault("subresources", []).append(nested)
            continue
        resources[name] = {
            "resource": name,
            "responseKind": kind,
            "scope": _get_scope_name(entry),
            "singularResource": entry["singularName"],
            "verbs": entry["verbs"],
            **{key: entry[key] for key in ("shortNames", "categories") if key in entry},
        }
    return list(resources.values())


def _get_scope_name(entry: Document) -> str:
    return "Namespaced" if entry["namespaced"] else "Cluster"
