"""The table cells of namespaced kinds, and of Namespaces."""

from collections.abc import Callable
from typing import Any

from fairlead.api.times import parse
from fairlead.server.registry.resource import Object
from fairlead.server.tables.ages import format_age
from fairlead.server.tables.cells import pods
from fairlead.server.tables.cells.autoscaler_targets import targets
from fairlead.server.tables.cells.formatters import (
    NONE,
    UNSET,
    Cell,
    at,
    containers,
    count,
    first_three,
    labels,
    load_balancer_addresses,
    modes,
    phase,
    ratio,
    selector,
    storage_class,
    text,
)

TimedCell = Callable[[Object, float], Any]  # takes the object and the current time


def _count_data(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _format_ports(obj: Object) -> str:
    port_texts = [
        f"{p['port']}:{p['nodePort']}/{p['protocol']}" if p.get("nodePort") else f"{p['port']}/{p['protocol']}"
        for p in at(obj, "spec", "ports") or ()
    ]
    return ",".join(port_texts) or NONE


def _list_external_addresses(obj: Object) -> str:
    spec = obj["spec"]
    value = ",".join(spec.get("externalIPs") or ())
    if spec.get("type") == "LoadBalancer":
        return ",".join(filter(None, (load_balancer_addresses(obj), value))) or "<pending>"
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or NONE
    return value or NONE


def _format_job_status(obj: Object) -> str:
    value = {c["type"] for c in at(obj, "status", "conditions") or () if c["status"] == "True"}
    if obj["metadata"].get("deletionTimestamp"):
        value.add("Terminating")
    return next((state for state in _JOB_STATES if state in value), "Running")


def _format_completions(obj: Object) -> str:
    desired = at(obj, "spec", "completions")
    if desired is None:
        parallel = at(obj, "spec", "parallelism") or 0
        desired = f"1 of {parallel}" if parallel > 1 else "1"
    return f"{at(obj, 'status', 'succeeded') or 0}/{desired}"


def _list_hosts(obj: Object) -> str:
    rules = at(obj, "spec", "rules") or ()
    shown_hosts: list[str] = []
    for index, rule in enumerate(rules):
        if len(shown_hosts) == _MAX_HOSTS:
            return (
                f"{','.join(shown_hosts)} + {len(rules) - _MAX_HOSTS} more..."
                if index < len(rules)
                else ",".join(shown_hosts)
            )
        shown_hosts += [rule["host"]] if rule.get("host") else []
    return ",".join(shown_hosts) or "*"


def _format_budget(key: str) -> Cell:
    return lambda obj: str(matches) if (matches := at(obj, "spec", key)) is not None else "N/A"


def _format_role(obj: Object) -> str:
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


def _list_subjects(kind: str) -> Cell:
    def cell(obj: Object) -> str:
        matches = [s for s in obj.get("subjects") or () if s["kind"] == kind]
        names = [f"{s['namespace']}/{s['name']}" if kind == "ServiceAccount" else s["name"] for s in matches]
        return ", ".join(names)

    return cell


def _format_involved_object(key: str) -> Cell:
    def cell(obj: Object) -> str:
        reference = obj.get(key) or {}
        kind = (reference.get("kind") or "").lower()
        return f"{kind}/{reference['name']}" if reference.get("name") else kind

    return cell


def _format_source(obj: Object) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    host = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {host}" if host else component


def _build_event_cells(object_field: str, message_field: str) -> dict[str, Cell]:
    return {
        "Type": text("type", empty=""),
        "Reason": text("reason", empty=""),
        "Object": _format_involved_object(object_field),
        "Subobject": text(object_field, "fieldPath", empty=""),
        "Source": _format_source,
        "Message": lambda obj: (obj.get(message_field) or "").strip(),
        "Count": _count_events,
    }


def _list_endpoint_ports(obj: Object) -> str:
    matches = [str(port.get("port") or port.get("name", "*")) for port in obj.get("ports") or ()]
    return first_three(matches) or UNSET


def _list_endpoint_addresses(obj: Object) -> str:
    matches = [a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()]
    return first_three(matches) or UNSET


def _list_subset_addresses(obj: Object) -> str:
    """Return the addresses of an Endpoints object, each with each port."""
    matches: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        hosts = [f"[{ip}]" if ":" in ip else ip for ip in addresses]
        ports = [port["port"] for port in subset.get("ports") or ()]
        matches += [f"{host}:{port}" for port in ports for host in hosts] if ports else addresses
    return first_three(matches) or NONE


def _format_quota(shows_limits: bool) -> Cell:
    def shown(obj: Object) -> str:
        hard, used = at(obj, "status", "hard") or {}, at(obj, "status", "used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits") is shows_limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return shown


def _format_controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            return f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return NONE


def _get_claim_capacity(obj: Object) -> str:
    """Return the capacity of the volume that a claim is bound to, or "" if the claim is not bound."""
    return (at(obj, "status", "capacity", "storage") or "0") if at(obj, "spec", "volumeName") else ""


def _format_duration(obj: Object, now: float) -> str:
    start, end = at(obj, "status", "startTime"), at(obj, "status", "completionTime")
    return format_age(start, parse(end) if end else now) if start else ""


def _format_last_schedule(obj: Object, now: float) -> str:
    stamp = at(obj, "status", "lastScheduleTime")
    return format_age(stamp, now) if stamp else NONE


def _format_first_seen(obj: Object, now: float) -> str:
    return format_age(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now)


def _format_last_seen(obj: Object, now: float) -> str:
    if obj.get("series") is not None:
        return format_age(at(obj, "series", "lastObservedTime"), now)
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    return format_age(last, now) if last else _format_first_seen(obj, now)


def _count_events(obj: Object) -> int:
    if obj.get("series") is not None:
        return at(obj, "series", "count") or 0
    return obj.get("count") or obj.get("deprecatedCount") or 1


def _format_scale_target(obj: Object) -> str:
    target = at(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind')}/{target.get('name')}"


_MAX_HOSTS = 3
_JOB_STATES = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")
_TEMPLATE = ("spec", "template", "spec")
_PODS: dict[str, Cell] = {
    "Containers": containers("name", *_TEMPLATE),
    "Images": containers("image", *_TEMPLATE),
    "Selector": selector("spec", "selector"),
}
_REPLICAS: dict[str, Cell] = {
    "Desired": count("spec", "replicas"),
    "Current": count("status", "replicas"),
    "Ready": count("status", "readyReplicas"),
    **_PODS,
}
_BINDING: dict[str, Cell] = {
    "Role": _format_role,
    "Users": _list_subjects("User"),
    "Groups": _list_subjects("Group"),
    "ServiceAccounts": _list_subjects("ServiceAccount"),
}

CELLS: dict[str, dict[str, Cell]] = {
    "/configmaps": {"Data": _count_data},
    "/secrets": {"Type": text("type"), "Data": _count_data},
    "/namespaces": {"Status": text("status", "phase", empty="")},
    "/services": {
        "Type": text("spec", "type"),
        "Cluster-IP": text("spec", "clusterIP"),
        "External-IP": _list_external_addresses,
        "Port(s)": _format_ports,
        "Selector": labels("spec", "selector"),
    },
    "/pods": {
        "Ready": pods.ready,
        "Status": pods.status,
        "IP": text("status", "podIP"),
        "Node": text("spec", "nodeName"),
        "Nominated Node": text("status", "nominatedNodeName"),
        "Readiness Gates": pods.gates,
    },
    "/events": _build_event_cells("involvedObject", "message"),
    "events.k8s.io/events": _build_event_cells("regarding", "note"),
    "/endpoints": {"Endpoints": _list_subset_addresses},
    "/resourcequotas": {"Request": _format_quota(shows_limits=False), "Limit": _format_quota(shows_limits=True)},
    "apps/controllerrevisions": {"Controller": _format_controller, "Revision": lambda obj: obj.get("revision") or 0},
    "/persistentvolumeclaims": {
        "Status": phase,
        "Volume": text("spec", "volumeName", empty=""),
        "Capacity": _get_claim_capacity,
        "StorageClass": storage_class,
        "VolumeAttributesClass": text("spec", "volumeAttributesClassName", empty=UNSET),
        "VolumeMode": text("spec", "volumeMode", empty=UNSET),
        "Access Modes": lambda obj: modes("status", "accessModes")(obj) if at(obj, "spec", "volumeName") else "",
    },
    "/podtemplates": {
        "Containers": containers("name", "template", "spec"),
        "Images": containers("image", "template", "spec"),
        "Pod Labels": labels("template", "metadata", "labels"),
    },
    "/replicationcontrollers": {**_REPLICAS, "Selector": labels("spec", "selector")},
    "apps/deployments": {
        "Ready": ratio(("status", "readyReplicas"), ("spec", "replicas")),
        "Up-to-date": count("status", "updatedReplicas"),
        "Available": count("status", "availableReplicas"),
        **_PODS,
    },
    "apps/statefulsets": {"Ready": ratio(("status", "readyReplicas"), ("spec", "replicas")), **_PODS},
    "apps/replicasets": _REPLICAS,
    "apps/daemonsets": {
        "Desired": count("status", "desiredNumberScheduled"),
        "Current": count("status", "currentNumberScheduled"),
        "Ready": count("status", "numberReady"),
        "Up-to-date": count("status", "updatedNumberScheduled"),
        "Available": count("status", "numberAvailable"),
        "Node Selector": labels(*_TEMPLATE, "nodeSelector"),
        **_PODS,
    },
    "batch/jobs": {"Status": _format_job_status, "Completions": _format_completions, **_PODS},
    "batch/cronjobs": {
        "Schedule": text("spec", "schedule"),
        "Timezone": text("spec", "timeZone"),
        "Suspend": lambda obj: "True" if at(obj, "spec", "suspend") else "False",
        "Active": lambda obj: len(at(obj, "status", "active") or ()),
        "Containers": containers("name", "spec", "jobTemplate", *_TEMPLATE),
        "Images": containers("image", "spec", "jobTemplate", *_TEMPLATE),
        "Selector": selector("spec", "jobTemplate", "spec", "selector"),
    },
    "coordination.k8s.io/leases": {"Holder": text("spec", "holderIdentity", empty="")},
    "networking.k8s.io/ingresses": {
        "Class": text("spec", "ingressClassName"),
        "Hosts": _list_hosts,
        "Address": load_balancer_addresses,
        "Ports": lambda obj: "80, 443" if at(obj, "spec", "tls") else "80",
    },
    "networking.k8s.io/networkpolicies": {"Pod-Selector": selector("spec", "podSelector")},
    "policy/poddisruptionbudgets": {
        "Min Available": _format_budget("minAvailable"),
        "Max Unavailable": _format_budget("maxUnavailable"),
        "Allowed Disruptions": count("status", "disruptionsAllowed"),
    },
    "autoscaling/horizontalpodautoscalers": {
        "Reference": _format_scale_target,
        "Targets": targets,
        "MinPods": text("spec", "minReplicas", empty=UNSET),
        "MaxPods": count("spec", "maxReplicas"),
        "Replicas": count("status", "currentReplicas"),
    },
    "rbac.authorization.k8s.io/rolebindings": _BINDING,
    "rbac.authorization.k8s.io/clusterrolebindings": _BINDING,
    "discovery.k8s.io/endpointslices": {
        "AddressType": text("addressType"),
        "Ports": _list_endpoint_ports,
        "Endpoints": _list_endpoint_addresses,
    },
}
_SEEN: dict[str, TimedCell] = {"Last Seen": _format_last_seen, "First Seen": _format_first_seen}
TIMED: dict[str, dict[str, TimedCell]] = {  # cells that depend on the current time
    "/pods": {"Restarts": pods.restarts},
    "/events": _SEEN,
    "events.k8s.io/events": _SEEN,
    "batch/jobs": {"Duration": _format_duration},
    "batch/cronjobs": {"Last Schedule": _format_last_schedule},
}
