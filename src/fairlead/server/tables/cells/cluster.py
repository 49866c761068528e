"""The table cells of cluster-scoped kinds."""

from fairlead.server.registry.resource import Object
from fairlead.server.tables.ages import UNKNOWN, format_age
from fairlead.server.tables.cells.formatters import (
    NONE,
    UNSET,
    Cell,
    at,
    class_name,
    count,
    flag,
    modes,
    phase,
    size,
    storage_class,
    text,
)

_ROLE = "node-role.kubernetes.io/"


def _format_readiness(node: Object) -> str:
    matches = [c.get("status") for c in at(node, "status", "conditions") or () if c.get("type") == "Ready"]
    status = ("Ready" if matches[-1] == "True" else "NotReady") if matches else "Unknown"
    return f"{status},SchedulingDisabled" if at(node, "spec", "unschedulable") else status


def _list_roles(node: Object) -> str:
    value = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in value if key.startswith(_ROLE)} | {value.get("kubernetes.io/role", "")}
    return ",".join(sorted(roles - {""})) or NONE


def _find_address(kind: str) -> Cell:
    def cell(node: Object) -> str:
        matches = [a.get("address") or "" for a in at(node, "status", "addresses") or () if a.get("type") == kind]
        return matches[0] if matches else NONE

    return cell


def _format_kernel(node: Object) -> str:
    version, built = (at(node, "status", "nodeInfo", key) for key in ("kernelVersion", "architecture"))
    return f"{version or UNKNOWN} ({built})" if built else version or UNKNOWN


def _format_claim(volume: Object) -> str:
    claim = at(volume, "spec", "claimRef")
    return "" if claim is None else f"{claim.get('namespace') or ''}/{claim.get('name') or ''}"


def _format_parameters(ingress_class: Object) -> str:
    value = at(ingress_class, "spec", "parameters")
    if value is None:
        return NONE
    group = f".{value['apiGroup']}" if value.get("apiGroup") is not None else ""
    return f"{value.get('kind')}{group}/{value.get('name')}"


def _format_parent(address: Object) -> str:
    value = at(address, "spec", "parentRef")
    if value is None:
        return NONE
    kind = f"{value.get('resource')}.{value['group']}" if value.get("group") else value.get("resource") or ""
    return "/".join(part for part in (kind.lower(), value.get("namespace"), value.get("name")) if part)


def _format_param_kind(policy: Object) -> str:
    value = at(policy, "spec", "paramKind")
    return UNSET if value is None else f"{value.get('apiVersion') or ''}/{value.get('kind') or ''}"


def _format_param_ref(binding: Object) -> str:
    value = at(binding, "spec", "paramRef") or {}
    return f"{value.get('namespace') or '*'}/{value['name']}" if value.get("name") else UNSET


def _has_missing_priority_level(schema: Object) -> str:
    matches = [c.get("status") for c in at(schema, "status", "conditions") or () if c.get("type") == "Dangling"]
    return matches[0] or "" if matches else "?"


def _get_limit(*path: str) -> Cell:
    def cell(level: Object) -> object:
        value = at(level, "spec", "limited", *path)
        return NONE if value is None else value

    return cell


def _format_claim_state(claim: Object) -> str:
    deleted, status = bool(claim["metadata"].get("deletionTimestamp")), claim.get("status") or {}
    states = ["deleted"] if deleted else []
    if status.get("allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return ",".join(states)


def _format_signing_condition(request: Object) -> str:
    value = {c.get("type") for c in at(request, "status", "conditions") or ()}
    status = next((kind for kind in ("Denied", "Approved") if kind in value), "Pending")
    return (
        status + (",Failed" if "Failed" in value else "") + (",Issued" if at(request, "status", "certificate") else "")
    )


def _format_requested_duration(request: Object) -> str:
    seconds = at(request, "spec", "expirationSeconds")
    return NONE if seconds is None else format_age("1970-01-01T00:00:00Z", seconds)


def _list_audiences(driver: Object) -> str:
    requests = at(driver, "spec", "tokenRequests")
    return UNSET if requests is None else ",".join(request.get("audience") or "" for request in requests)


def _format_service(service: Object) -> str:
    value = at(service, "spec", "service")
    return "Local" if value is None else f"{value.get('namespace')}/{value.get('name')}"


def _format_availability(service: Object) -> str:
    matches = [c for c in at(service, "status", "conditions") or () if c.get("type") == "Available"]
    if not matches:
        return "Unknown"
    status = matches[0].get("status") or ""
    return status if status == "True" else f"{status} ({matches[0].get('reason') or ''})"


_BINDING: dict[str, Cell] = {"PolicyName": text("spec", "policyName", empty=""), "ParamRef": _format_param_ref}
CELLS: dict[str, dict[str, Cell]] = {
    "/nodes": {
        "Status": _format_readiness,
        "Roles": _list_roles,
        "Version": text("status", "nodeInfo", "kubeletVersion", empty=""),
        "Internal-IP": _find_address("InternalIP"),
        "External-IP": _find_address("ExternalIP"),
        "OS-Image": text("status", "nodeInfo", "osImage", empty=UNKNOWN),
        "Kernel-Version": _format_kernel,
        "Container-Runtime": text("status", "nodeInfo", "containerRuntimeVersion", empty=UNKNOWN),
    },
    "/persistentvolumes": {
        "Capacity": text("spec", "capacity", "storage", empty="0"),
        "Access Modes": modes("spec", "accessModes"),
        "Reclaim Policy": text("spec", "persistentVolumeReclaimPolicy", empty=""),
        "Status": phase,
        "Claim": _format_claim,
        "StorageClass": storage_class,
        "VolumeAttributesClass": text("spec", "volumeAttributesClassName", empty=UNSET),
        "Reason": text("status", "reason", empty=""),
        "VolumeMode": text("spec", "volumeMode", empty=UNSET),
    },
    "scheduling.k8s.io/priorityclasses": {
        "Value": count("value"),
        "Global-Default": flag("globalDefault"),
        "PreemptionPolicy": text("preemptionPolicy", empty=""),
    },
    "storage.k8s.io/storageclasses": {
        "Name": class_name(*(f"storageclass.{beta}kubernetes.io/is-default-class" for beta in ("", "beta."))),
        "Provisioner": text("provisioner"),
        "ReclaimPolicy": text("reclaimPolicy"),
        "VolumeBindingMode": text("volumeBindingMode", empty=UNSET),
        "AllowVolumeExpansion": flag("allowVolumeExpansion"),
    },
    "storage.k8s.io/csidrivers": {
        "AttachRequired": lambda obj: at(obj, "spec", "attachRequired") is not False,
        "PodInfoOnMount": flag("spec", "podInfoOnMount"),
        "StorageCapacity": flag("spec", "storageCapacity"),
        "TokenRequests": _list_audiences,
        "RequiresRepublish": flag("spec", "requiresRepublish"),
        "Modes": lambda obj: ",".join(at(obj, "spec", "volumeLifecycleModes") or ()) or NONE,
    },
    "storage.k8s.io/csinodes": {"Drivers": size("spec", "drivers")},
    "storage.k8s.io/volumeattachments": {
        "Attacher": text("spec", "attacher", empty=""),
        "PV": text("spec", "source", "persistentVolumeName", empty=""),
        "Node": text("spec", "nodeName", empty=""),
        "Attached": flag("status", "attached"),
    },
    "storage.k8s.io/volumeattributesclasses": {"DriverName": text("driverName", empty="")},
    "node.k8s.io/runtimeclasses": {"Handler": text("handler", empty="")},
    "networking.k8s.io/ingressclasses": {
        "Name": class_name("ingressclass.kubernetes.io/is-default-class"),
        "Controller": text("spec", "controller", empty=""),
        "Parameters": _format_parameters,
    },
    "networking.k8s.io/servicecidrs": {"CIDRs": lambda obj: ",".join(at(obj, "spec", "cidrs") or ())},
    "networking.k8s.io/ipaddresses": {"ParentRef": _format_parent},
    "admissionregistration.k8s.io/validatingwebhookconfigurations": {"Webhooks": size("webhooks")},
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": {"Webhooks": size("webhooks")},
    "admissionregistration.k8s.io/validatingadmissionpolicies": {
        "Validations": size("spec", "validations"),
        "ParamKind": _format_param_kind,
    },
    "admissionregistration.k8s.io/mutatingadmissionpolicies": {
        "Mutations": size("spec", "mutations"),
        "ParamKind": _format_param_kind,
    },
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": _BINDING,
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings": _BINDING,
    "certificates.k8s.io/certificatesigningrequests": {
        "SignerName": text("spec", "signerName"),
        "Requestor": text("spec", "username", empty=""),
        "RequestedDuration": _format_requested_duration,
        "Condition": _format_signing_condition,
    },
    "flowcontrol.apiserver.k8s.io/flowschemas": {
        "PriorityLevel": text("spec", "priorityLevelConfiguration", "name", empty=""),
        "MatchingPrecedence": count("spec", "matchingPrecedence"),
        "DistinguisherMethod": text("spec", "distinguisherMethod", "type"),
        "MissingPL": _has_missing_priority_level,
    },
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": {
        "Type": text("spec", "type", empty=""),
        "NominalConcurrencyShares": _get_limit("nominalConcurrencyShares"),
        "Queues": _get_limit("limitResponse", "queuing", "queues"),
        "HandSize": _get_limit("limitResponse", "queuing", "handSize"),
        "QueueLengthLimit": _get_limit("limitResponse", "queuing", "queueLengthLimit"),
    },
    "resource.k8s.io/resourceclaims": {"State": _format_claim_state},
    "resource.k8s.io/resourceslices": {
        "Node": text("spec", "nodeName", empty=""),
        "Driver": text("spec", "driver", empty=""),
        "Pool": text("spec", "pool", "name", empty=""),
    },
    "apiregistration.k8s.io/apiservices": {"Service": _format_service, "Available": _format_availability},
}
