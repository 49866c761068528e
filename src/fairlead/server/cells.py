"""What stands in the cells of a Table of built-in objects: one small function a column, for kinds that people list."""

from collections.abc import Callable
from typing import Any

from fairlead.api.times import parse
from fairlead.server.ages import UNKNOWN, age
from fairlead.server.registry.resource import Object

NONE, UNSET = "<none>", "<unset>"
Cell = Callable[[Object], Any]


def at(obj: Any, *path: str) -> Any:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _count(*path: str) -> Cell:
    return lambda obj: at(obj, *path) or 0


def _text(*path: str, empty: str = NONE) -> Cell:
    return lambda obj: str(found) if (found := at(obj, *path)) not in (None, "") else empty


def _ratio(done: tuple[str, ...], wanted: tuple[str, ...]) -> Cell:
    return lambda obj: f"{at(obj, *done) or 0}/{at(obj, *wanted) or 0}"


def _containers(field: str, *path: str) -> Cell:
    return lambda obj: ",".join(c.get(field) or "" for c in at(obj, *path, "containers") or ())


def _labels(*path: str) -> Cell:
    def cell(obj: Object) -> str:
        found = at(obj, *path) or {}
        return ",".join(f"{k}={v}" for k, v in sorted(found.items())) or NONE

    return cell


def _selector(*path: str) -> Cell:
    def cell(obj: Object) -> str:
        found = at(obj, *path)
        if found is None:
            return NONE
        parts = [(k, f"{k}={v}") for k, v in (found.get("matchLabels") or {}).items()]
        for one in found.get("matchExpressions") or ():
            values = ",".join(sorted(one.get("values") or ()))
            key = one["key"]
            shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
            parts.append((key, shown.get(one["operator"], f"!{key}")))
        return ",".join(text for _, text in sorted(parts)) or NONE

    return cell


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
        points = at(obj, "status", "loadBalancer", "ingress") or ()
        found = ",".join(p.get("ip") or p.get("hostname") or "" for p in points)
        return ",".join(filter(None, (found, given))) or "<pending>"
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or NONE
    return given or NONE


def _pod_ready(obj: Object) -> str:
    ready = sum(1 for c in at(obj, "status", "containerStatuses") or () if c.get("ready"))
    return f"{ready}/{len(obj['spec'].get('containers') or ())}"


def _pod_status(obj: Object) -> str:
    reason = at(obj, "status", "reason") or at(obj, "status", "phase") or ""
    for container in at(obj, "status", "containerStatuses") or ():
        state = container.get("state") or {}
        reason = at(state, "waiting", "reason") or at(state, "terminated", "reason") or reason
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else reason


def _restarts(obj: Object) -> str:
    return str(sum(c.get("restartCount", 0) for c in at(obj, "status", "containerStatuses") or ()))


def _gates(obj: Object) -> str:
    gates = obj["spec"].get("readinessGates") or ()
    if not gates:
        return NONE
    true = {c["type"] for c in at(obj, "status", "conditions") or () if c.get("status") == "True"}
    return f"{sum(1 for g in gates if g['conditionType'] in true)}/{len(gates)}"


def _job_status(obj: Object) -> str:
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        if any(c["type"] == kind and c["status"] == "True" for c in at(obj, "status", "conditions") or ()):
            return word
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else "Running"


def _completions(obj: Object) -> str:
    wanted = at(obj, "spec", "completions")
    if wanted is None:
        parallel = at(obj, "spec", "parallelism") or 0
        wanted = f"1 of {parallel}" if parallel > 1 else "1"
    return f"{at(obj, 'status', 'succeeded') or 0}/{wanted}"


def _duration(obj: Object) -> str:
    start, end = at(obj, "status", "startTime"), at(obj, "status", "completionTime")
    return age(start, parse(end)) if start and end else ""


def _hosts(obj: Object) -> str:
    hosts = [r["host"] for r in at(obj, "spec", "rules") or () if r.get("host")]
    if not hosts:
        return "*"
    return ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")


def _addresses(obj: Object) -> str:
    return ",".join(p.get("ip") or p.get("hostname") or "" for p in at(obj, "status", "loadBalancer", "ingress") or ())


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
        return f"{(about.get('kind') or '').lower()}/{about.get('name') or ''}"

    return cell


def _source(obj: Object) -> str:
    parts = (at(obj, "source", "component") or obj.get("reportingComponent"), at(obj, "source", "host"))
    return ", ".join(p for p in parts if p)


def _endpoint_ports(obj: Object) -> str:
    found = [str(port.get("port") or port.get("name", "*")) for port in obj.get("ports") or ()]
    return _first(found) or UNSET


def _endpoint_addresses(obj: Object) -> str:
    found = [a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()]
    return _first(found) or UNSET


def _first(found: list[str]) -> str:
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "")


def _subsets(obj: Object) -> str:
    """Endpoints of the old kind: addresses with each port."""
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        ports = [str(port["port"]) for port in subset.get("ports") or ()]
        for address in subset.get("addresses") or ():
            ip = address["ip"]
            host = f"[{ip}]" if ":" in ip else ip
            found += [f"{host}:{port}" for port in ports] or [ip]
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "") or NONE


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


def _targets(obj: Object) -> str:
    """What an autoscaler aims at, of resources; of all other metrics it is not known what they are now."""
    wanted, now = at(obj, "spec", "metrics") or (), at(obj, "status", "currentMetrics") or ()
    if (percent := at(obj, "spec", "targetCPUUtilizationPercentage")) is not None:
        wanted = [{"resource": {"name": "cpu", "target": {"averageUtilization": percent}}}]
        now = [{"resource": {"current": {"averageUtilization": at(obj, "status", "currentCPUUtilizationPercentage")}}}]
    shown = []
    for index, metric in enumerate(wanted):
        current = (at(now[index], "resource", "current") or {}) if index < len(now) else {}
        target = at(metric, "resource", "target") or {}
        value = "averageValue" if target.get("averageValue") is not None else "averageUtilization"
        sign = "%" if value == "averageUtilization" else ""
        ends = [f"{one[value]}{sign}" if one.get(value) is not None else UNKNOWN for one in (current, target)]
        shown.append(f"{at(metric, 'resource', 'name') or UNKNOWN}: {'/'.join(ends)}")
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more if shown else NONE


def _reference(obj: Object) -> str:
    target = at(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind')}/{target.get('name')}"


def _phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else at(obj, "status", "phase") or ""


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_TEMPLATE = ("spec", "template", "spec")
_PODS: dict[str, Cell] = {
    "Containers": _containers("name", *_TEMPLATE),
    "Images": _containers("image", *_TEMPLATE),
    "Selector": _selector("spec", "selector"),
}
_REPLICAS: dict[str, Cell] = {
    "Desired": _count("spec", "replicas"),
    "Current": _count("status", "replicas"),
    "Ready": _count("status", "readyReplicas"),
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
    "/secrets": {"Type": _text("type"), "Data": _data},
    "/namespaces": {"Status": _text("status", "phase", empty="")},
    "/services": {
        "Type": _text("spec", "type"),
        "Cluster-IP": _text("spec", "clusterIP"),
        "External-IP": _external,
        "Port(s)": _ports,
        "Selector": _labels("spec", "selector"),
    },
    "/pods": {
        "Ready": _pod_ready,
        "Status": _pod_status,
        "Restarts": _restarts,
        "IP": _text("status", "podIP"),
        "Node": _text("spec", "nodeName"),
        "Nominated Node": _text("status", "nominatedNodeName"),
        "Readiness Gates": _gates,
    },
    "/events": {
        "Type": _text("type", empty=""),
        "Reason": _text("reason", empty=""),
        "Object": _involved("involvedObject"),
        "Subobject": _text("involvedObject", "fieldPath", empty=""),
        "Source": _source,
        "Message": lambda obj: (obj.get("message") or "").strip(),
        "Count": lambda obj: obj.get("count") or 1,
    },
    "/endpoints": {"Endpoints": _subsets},
    "/resourcequotas": {"Request": _quota(limits=False), "Limit": _quota(limits=True)},
    "apps/controllerrevisions": {"Controller": _controller, "Revision": lambda obj: obj.get("revision") or 0},
    "/persistentvolumeclaims": {
        "Status": _phase,
        "Volume": _text("spec", "volumeName", empty=""),
        "Capacity": _text("status", "capacity", "storage", empty=""),
        "StorageClass": _text("spec", "storageClassName", empty=""),
        "VolumeAttributesClass": _text("spec", "volumeAttributesClassName", empty=UNSET),
        "VolumeMode": _text("spec", "volumeMode", empty=UNSET),
        "Access Modes": lambda obj: ",".join(_MODES.get(m, m) for m in at(obj, "status", "accessModes") or ()),
    },
    "/podtemplates": {
        "Containers": _containers("name", "template", "spec"),
        "Images": _containers("image", "template", "spec"),
        "Pod Labels": _labels("template", "metadata", "labels"),
    },
    "/replicationcontrollers": {**_REPLICAS, "Selector": _labels("spec", "selector")},
    "apps/deployments": {
        "Ready": _ratio(("status", "readyReplicas"), ("spec", "replicas")),
        "Up-to-date": _count("status", "updatedReplicas"),
        "Available": _count("status", "availableReplicas"),
        **_PODS,
    },
    "apps/statefulsets": {"Ready": _ratio(("status", "readyReplicas"), ("spec", "replicas")), **_PODS},
    "apps/replicasets": _REPLICAS,
    "apps/daemonsets": {
        "Desired": _count("status", "desiredNumberScheduled"),
        "Current": _count("status", "currentNumberScheduled"),
        "Ready": _count("status", "numberReady"),
        "Up-to-date": _count("status", "updatedNumberScheduled"),
        "Available": _count("status", "numberAvailable"),
        "Node Selector": _labels(*_TEMPLATE, "nodeSelector"),
        **_PODS,
    },
    "batch/jobs": {"Status": _job_status, "Completions": _completions, "Duration": _duration, **_PODS},
    "batch/cronjobs": {
        "Schedule": _text("spec", "schedule"),
        "Timezone": _text("spec", "timeZone"),
        "Suspend": lambda obj: "True" if at(obj, "spec", "suspend") else "False",
        "Active": lambda obj: len(at(obj, "status", "active") or ()),
        "Containers": _containers("name", "spec", "jobTemplate", *_TEMPLATE),
        "Images": _containers("image", "spec", "jobTemplate", *_TEMPLATE),
        "Selector": _selector("spec", "jobTemplate", "spec", "selector"),
    },
    "coordination.k8s.io/leases": {"Holder": _text("spec", "holderIdentity", empty="")},
    "networking.k8s.io/ingresses": {
        "Class": _text("spec", "ingressClassName"),
        "Hosts": _hosts,
        "Address": _addresses,
        "Ports": lambda obj: "80, 443" if at(obj, "spec", "tls") else "80",
    },
    "networking.k8s.io/networkpolicies": {"Pod-Selector": _selector("spec", "podSelector")},
    "policy/poddisruptionbudgets": {
        "Min Available": _budget("minAvailable"),
        "Max Unavailable": _budget("maxUnavailable"),
        "Allowed Disruptions": _count("status", "disruptionsAllowed"),
    },
    "autoscaling/horizontalpodautoscalers": {
        "Reference": _reference,
        "Targets": _targets,
        "MinPods": _text("spec", "minReplicas", empty=UNSET),
        "MaxPods": _count("spec", "maxReplicas"),
        "Replicas": _count("status", "currentReplicas"),
    },
    "rbac.authorization.k8s.io/rolebindings": _BINDING,
    "rbac.authorization.k8s.io/clusterrolebindings": _BINDING,
    "discovery.k8s.io/endpointslices": {
        "AddressType": _text("addressType"),
        "Ports": _endpoint_ports,
        "Endpoints": _endpoint_addresses,
    },
    "scheduling.k8s.io/priorityclasses": {
        "Value": _count("value"),
        "Global-Default": lambda obj: bool(obj.get("globalDefault")),
        "PreemptionPolicy": _text("preemptionPolicy", empty=""),
    },
    "storage.k8s.io/storageclasses": {
        "Provisioner": _text("provisioner"),
        "ReclaimPolicy": _text("reclaimPolicy"),
        "VolumeBindingMode": _text("volumeBindingMode", empty=UNSET),
        "AllowVolumeExpansion": lambda obj: bool(obj.get("allowVolumeExpansion")),
    },
}
