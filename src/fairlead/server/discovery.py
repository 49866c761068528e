"""Discovery: which groups, versions and kinds are served."""

from typing import Any

from fairlead.server.registry.lookup import Registry
from fairlead.server.registry.resource import Resource

CUSTOM_VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
BUILTIN_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.4",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}


def legacy_versions() -> dict[str, Any]:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }


def groups(registry: Registry) -> dict[str, Any]:
    found: dict[str, list[str]] = {}
    for resource in registry.served():
        versions = found.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
    listed = [group(name, versions) for name, versions in found.items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str, versions: list[str]) -> dict[str, Any]:
    entries = [{"groupVersion": f"{name}/{v}", "version": v} for v in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def resources(registry: Registry, group_name: str, version: str) -> dict[str, Any]:
    listed: list[dict[str, Any]] = []
    for resource in registry.served():
        if (resource.group, resource.version) == (group_name, version):
            listed += entries(resource)
    api_version = f"{group_name}/{version}" if group_name else version
    answer: dict[str, Any] = {"kind": "APIResourceList", "groupVersion": api_version, "resources": listed}
    return answer | {"apiVersion": "v1"} if group_name else answer


def entries(resource: Resource) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": CUSTOM_VERBS if resource.custom else BUILTIN_VERBS,
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    found = [entry]
    if resource.status:
        found.append({"name": f"{resource.plural}/status", "singularName": "", "namespaced": resource.namespaced,
                      "kind": resource.kind, "verbs": ["get", "patch", "update"]})  # fmt: skip
    if resource.scale:
        found.append({"name": f"{resource.plural}/scale", "singularName": "", "namespaced": resource.namespaced,
                      "group": "autoscaling", "version": "v1", "kind": "Scale",
                      "verbs": ["get", "patch", "update"]})  # fmt: skip
    return found
