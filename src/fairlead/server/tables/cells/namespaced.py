"""The cells of what is in a namespace, and of namespaces."""

from collections.abc import Callable
from typing import Any

from fairlead.api.times import parse
from fairlead.server.registry.resource import Object
from fairlead.server.tables.ages import age
from fairlead.server.tables.cells import pods
from fairlead.server.tables.cells.autoscaler_targets import targets
from fairlead.server.tables.cells.formatters import (
    NONE,
    UNSET,
    Cell,
    at,
    containers,
    count,
    few,
    labels,
    modes,
    phase,
    points,
    ratio,
    selector,
    storage_class,
    text,
)

Timed = Callable[[Object, float], Any]  # asked with the time it is


def _data(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _ports(obj: Object) -> str:
    shown = [
        f"{p['port']}:{p['nodePort']}/{p['protocol']}" if p.get("nodePort") else f"{p['port']}/{p['protocol']}"
        for p in at(obj, "spec", "ports") or ()
    ]
    return ",".join(shown) or NONE


def _external(obj: Object) -> str:
    spec = obj["spec"]
    given = ",".join(spec.get("externalIPs") or ())
    if spec.get("type") == "LoadBalancer":
        return ",".join(filter(None, (points(obj), given))) or "<pending>"
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or NONE
    return given or NONE


def _job_status(obj: Object) -> str:
    given = {c["type"] for c in at(obj, "status", "conditions") or () if c["status"] == "True"}
    if obj["metadata"].get("deletionTimestamp"):
        given.add("Terminating")
    return next((word for word in _JOB_STATES if word in given), "Running")


def _completions(obj: Object) -> str:
    wanted = at(obj, "spec", "completions")
    if wanted is None:
        parallel = at(obj, "spec", "parallelism") or 0
        wanted = f"1 of {parallel}" if parallel > 1 else "1"
    return f"{at(obj, 'status', 'succeeded') or 0}/{wanted}"


def _hosts(obj: Object) -> str:
    rules = at(obj, "spec", "rules") or ()
    shown: list[str] = []
    for index, rule in enumerate(rules):
        if len(shown) == _FEW:
            return f"{','.join(shown)} + {len(rules) - _FEW} more..." if index < len(rules) else ",".join(shown)
        shown += [rule["host"]] if rule.get("host") else []
    return ",".join(shown) or "*"


def _budget(key: str) -> Cell:
    return lambda obj: str(found) if (found := at(obj, "spec", key)) is not None else "N/A"


def _role(obj: Object) -> str:
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


def _subjects(kind: str) -> Cell:
    def cell(obj: Object) -> str:
        found = [s for s in obj.get("subjects") or () if s["kind"] == kind]
        names = [f"{s['namespace']}/{s['name']}" if kind == "ServiceAccount" else s["name"] for s in found]
        return ", ".join(names)

    return cell


def _involved(key: str) -> Cell:
    def cell(obj: Object) -> str:
        about = obj.get(key) or {}
        kind = (about.get("kind") or "").lower()
        return f"{kind}/{about['name']}" if about.get("name") else kind

    return cell


def _source(obj: Object) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    who = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    where = source.get("host") or obj.get("reportingInstance")
    return f"{who}, {where}" if where else who


def _event(about: str, said: str) -> dict[str, Cell]:
    return {
        "Type": text("type", empty=""),
        "Reason": text("reason", empty=""),
        "Object": _involved(about),
        "Subobject": text(about, "fieldPath", empty=""),
        "Source": _source,
        "Message": lambda obj: (obj.get(said) or "").strip(),
        "Count": _often,
    }


def _endpoint_ports(obj: Object) -> str:
    found = [str(port.get("port") or port.get("name", "*")) for port in obj.get("ports") or ()]
    return few(found) or UNSET


def _endpoint_addresses(obj: Object) -> str:
    found = [a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()]
    return few(found) or UNSET


def _subsets(obj: Object) -> str:
    """Endpoints of the old kind: addresses with each port."""
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        hosts = [f"[{ip}]" if ":" in ip else ip for ip in addresses]
        ports = [port["port"] for port in subset.get("ports") or ()]
        found += [f"{host}:{port}" for port in ports for host in hosts] if ports else addresses
    return few(found) or NONE


def _quota(limits: bool) -> Cell:
    def shown(obj: Object) -> str:
        hard, used = at(obj, "status", "hard") or {}, at(obj, "status", "used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits") is limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return shown


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            return f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return NONE


def _held(obj: Object) -> str:
    """How large a claim's volume is, once it has one."""
    return (at(obj, "status", "capacity", "storage") or "0") if at(obj, "spec", "volumeName") else ""


def _duration(obj: Object, now: float) -> str:
    start, end = at(obj, "status", "startTime"), at(obj, "status", "completionTime")
    return age(start, parse(end) if end else now) if start else ""


def _scheduled(obj: Object, now: float) -> str:
    stamp = at(obj, "status", "lastScheduleTime")
    return age(stamp, now) if stamp else NONE


def _first_seen(obj: Object, now: float) -> str:
    return age(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now)


def _last_seen(obj: Object, now: float) -> str:
    if obj.get("series") is not None:
        return age(at(obj, "series", "lastObservedTime"), now)
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    return age(last, now) if last else _first_seen(obj, now)


def _often(obj: Object) -> int:
    if obj.get("series") is not None:
        return at(obj, "series", "count") or 0
    return obj.get("count") or obj.get("deprecatedCount") or 1


def _reference(obj: Object) -> str:
    target = at(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind')}/{target.get('name')}"


_FEW = 3  # hosts that are shown
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
    "Role": _role,
    "Users": _subjects("User"),
    "Groups": _subjects("Group"),
    "ServiceAccounts": _subjects("ServiceAccount"),
}

CELLS: dict[str, dict[str, Cell]] = {
    "/configmaps": {"Data": _data},
    "/secrets": {"Type": text("type"), "Data": _data},
    "/namespaces": {"Status": text("status", "phase", empty="")},
    "/services": {
        "Type": text("spec", "type"),
        "Cluster-IP": text("spec", "clusterIP"),
        "External-IP": _external,
        "Port(s)": _ports,
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
    "/events": _event("involvedObject", "message"),
    "events.k8s.io/events": _event("regarding", "note"),
    "/endpoints": {"Endpoints": _subsets},
    "/resourcequotas": {"Request": _quota(limits=False), "Limit": _quota(limits=True)},
    "apps/controllerrevisions": {"Controller": _controller, "Revision": lambda obj: obj.get("revision") or 0},
    "/persistentvolumeclaims": {
        "Status": phase,
        "Volume": text("spec", "volumeName", empty=""),
        "Capacity": _held,
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
    "batch/jobs": {"Status": _job_status, "Completions": _completions, **_PODS},
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
        "Hosts": _hosts,
        "Address": points,
        "Ports": lambda obj: "80, 443" if at(obj, "spec", "tls") else "80",
    },
    "networking.k8s.io/networkpolicies": {"Pod-Selector": selector("spec", "podSelector")},
    "policy/poddisruptionbudgets": {
        "Min Available": _budget("minAvailable"),
        "Max Unavailable": _budget("maxUnavailable"),
        "Allowed Disruptions": count("status", "disruptionsAllowed"),
    },
    "autoscaling/horizontalpodautoscalers": {
        "Reference": _reference,
        "Targets": targets,
        "MinPods": text("spec", "minReplicas", empty=UNSET),
        "MaxPods": count("spec", "maxReplicas"),
        "Replicas": count("status", "currentReplicas"),
    },
    "rbac.authorization.k8s.io/rolebindings": _BINDING,
    "rbac.authorization.k8s.io/clusterrolebindings": _BINDING,
    "discovery.k8s.io/endpointslices": {
        "AddressType": text("addressType"),
        "Ports": _endpoint_ports,
        "Endpoints": _endpoint_addresses,
    },
}
_SEEN: dict[str, Timed] = {"Last Seen": _last_seen, "First Seen": _first_seen}
TIMED: dict[str, dict[str, Timed]] = {  # cells that say how long ago something was
    "/pods": {"Restarts": pods.restarts},
    "/events": _SEEN,
    "events.k8s.io/events": _SEEN,
    "batch/jobs": {"Duration": _duration},
    "batch/cronjobs": {"Last Schedule": _scheduled},
}
