"""The built-in kinds as Resources: discovery's facts from the table, and what the strategies of each kind decide."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import builtin


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# PUT to a missing name creates.
_CREATE_ON_UPDATE = _words("""
    events limitranges services endpoints leases roles rolebindings clusterroles clusterrolebindings runtimeclasses
""")
# PUT without a resourceVersion is refused.
_CONDITIONAL = _words("""
    leases poddisruptionbudgets runtimeclasses csidrivers csistoragecapacities volumeattachments csinodes
    validatingadmissionpolicies mutatingadmissionpolicies validatingadmissionpolicybindings
    mutatingadmissionpolicybindings mutatingwebhookconfigurations validatingwebhookconfigurations
""")
# DELETE answers the object.
_ANSWERED = _words("""
    resourceclaimtemplates resourceslices resourceclaims deviceclasses csidrivers storageclasses volumeattachments
    csinodes volumeattributesclasses resourcequotas persistentvolumes serviceaccounts persistentvolumeclaims namespaces
    pods services podtemplates
""")
# What counts as a new generation.
_SPEC = _words("""
    ingressclasses networkpolicies ingresses poddisruptionbudgets resourceslices deviceclasses flowschemas
    prioritylevelconfigurations daemonsets statefulsets replicasets jobs cronjobs pods replicationcontrollers
    validatingadmissionpolicies mutatingadmissionpolicies validatingadmissionpolicybindings
    mutatingadmissionpolicybindings customresourcedefinitions priorityclasses
""")
_GENERATION: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_SPEC, ("spec",)),
    "deployments": ("spec", "metadata.annotations"),
    "endpointslices": ("endpoints", "ports", "addressType", "metadata.labels"),
    "podtemplates": ("template",),
    "mutatingwebhookconfigurations": ("webhooks",),
    "validatingwebhookconfigurations": ("webhooks",),
}
_SCALED = {
    "deployments": "apps",
    "replicasets": "apps",
    "statefulsets": "apps",
    "replicationcontrollers": "",
}
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
_STATUS_KEEPS = {"deployments": ("labels",)}


@cache
def builtin_resources() -> tuple[Resource, ...]:
    """Every kind of the table that the server stores, the preferred version of each first."""
    return tuple(_resources())


def _resources() -> Iterator[Resource]:
    table = builtin.table()
    order = [""] + [group["name"] for group in table["groups"]]
    preferred = {group["name"]: group["versions"] for group in table["groups"]} | {"": ["v1"]}
    for group in order:
        for version in preferred[group]:
            api_version = f"{group}/{version}" if group else version
            entries = table["kinds"].get(api_version, [])
            names = {entry["name"] for entry in entries}
            for entry in entries:
                if "/" not in entry["name"] and "list" in entry["verbs"] and "create" in entry["verbs"]:
                    yield _resource(group, version, entry, names)


def _resource(group: str, version: str, entry: dict[str, Any], names: set[str]) -> Resource:
    plural = entry["name"]
    return Resource(
        group=group,
        version=version,
        kind=entry["kind"],
        plural=plural,
        singular=entry["singularName"],
        namespaced=entry["namespaced"],
        schema=builtin.node(group, version, entry["kind"]),
        list_kind=f"{entry['kind']}List",
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        verbs=tuple(entry["verbs"]),
        storage_version_hash=entry.get("storageVersionHash", ""),
        status=f"{plural}/status" in names,
        status_keeps=_STATUS_KEEPS.get(plural, ()),
        scale=_SCALE if _SCALED.get(plural) == group else None,
        has_generation=plural in _GENERATION,
        generation_of=_GENERATION.get(plural, ("spec",)),
        unconditional_update=plural not in _CONDITIONAL,
        create_on_update=plural in _CREATE_ON_UPDATE,
        delete_answers_object=plural in _ANSWERED,
        default=_named if plural == "customresourcedefinitions" else None,
        prepare_create=_unsettled if plural == "customresourcedefinitions" else None,
    )


def _named(obj: Object) -> Object:
    """A definition with the names that follow from its kind."""
    spec = obj.get("spec") or {}
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    return {**obj, "spec": {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}}


def _unsettled(obj: Object) -> None:
    stored = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
    names = {"kind": "", "plural": ""}
    obj["status"] = {"acceptedNames": names, "conditions": None, "storedVersions": stored}
