"""What the server sets itself when a built-in object is created or updated, beyond its defaults.

Each function replaces top-level values of the dict it is given, or of its metadata; what is deeper is shared and never
changed.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from fairlead.server.authentication.users import User
from fairlead.server.registry.defaults import TEMPLATE_GENERATION
from fairlead.server.schema import codec, quantity
from fairlead.server.schema.crd_schema_validation import coerce_defaults
from fairlead.server.schema.nodes import Node

Object = dict[str, Any]
_NOT_READY: Final = tuple(
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
)
_SOURCES: Final = ((None, "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_CLUSTER: Final = frozenset(  # of a Service: what it loses when it becomes a mere name
    {
        "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", "externalTrafficPolicy",
        "healthCheckNodePort", "allocateLoadBalancerNodePorts", "loadBalancerClass",
    }
)  # fmt: skip
_ON_NODES: Final = ("NodePort", "LoadBalancer")
_COMPUTE: Final = ("cpu", "memory")
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
    "lastProbeTime": None,
}


def cleared_status(schema: Node) -> Callable[[Object], None]:
    """A kind whose status only its subresource may write starts with an empty one."""
    node = schema.fields["status"]

    def clear(obj: Object) -> None:
        if node.go.pointer or (empty := codec.zero_value(node)) is None:
            obj.pop("status", None)
        else:
            obj["status"] = empty

    return clear


def namespace(obj: Object) -> None:
    metadata = obj["metadata"]
    if metadata.get("name"):  # made from a prefix after the defaults were filled in
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    if "kubernetes" not in finalizers:
        finalizers = [*finalizers, "kubernetes"]
    obj["spec"] = {**(obj.get("spec") or {}), "finalizers": finalizers}
    obj["status"] = {"phase": "Active"}


def claim(obj: Object) -> None:
    obj["status"] = {}
    obj["spec"] = _sourced(obj["spec"], {})
    _protected(obj, "kubernetes.io/pvc-protection")


def claim_update(obj: Object, old: Object) -> None:
    obj["spec"] = _sourced(obj.get("spec") or {}, old.get("spec") or {})


def _sourced(spec: Object, old: Object) -> Object:
    """The old and the new name of a claim's source agree; by the old one only claims and snapshots are asked for."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    known = reference is not None or "dataSource" in old or "dataSourceRef" in old
    if source is not None and not known and (source.get("apiGroup"), source.get("kind")) not in _SOURCES:
        source, spec = None, {key: value for key, value in spec.items() if key != "dataSource"}
    if source is not None and reference is None:
        return {**spec, "dataSourceRef": source}
    if source is None and reference is not None and not reference.get("namespace"):
        return {**spec, "dataSource": reference}
    return spec


def node(obj: Object) -> None:
    """A node is not ready for Pods until somebody says so."""
    spec = dict(obj.get("spec") or {})
    spec.pop("configSource", None)
    taints, unready = spec.get("taints") or [], {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    known = any((one.get("key"), one.get("effect")) == (unready["key"], unready["effect"]) for one in taints)
    obj["spec"] = spec if known else {**spec, "taints": [*taints, unready]}


def asked_for_certificate(obj: Object, user: User) -> None:
    """Whoever asks is told by the server, not by themselves."""
    said = ("username", "uid", "groups", "extra")
    spec = {key: value for key, value in (obj.get("spec") or {}).items() if key not in said}
    obj["spec"] = spec | user.to_user_info()


def certificate_request_update(obj: Object, old: Object) -> None:
    obj["spec"] = old["spec"]


def attributes_class(obj: Object) -> None:
    """Kept while it is in use."""
    _finalized(obj, "kubernetes.io/vac-protection")


def driver_update(obj: Object, old: Object) -> None:
    """The generation of a driver begins with its first change."""
    if obj.get("spec") != old.get("spec"):
        generation = old["metadata"].get("generation", 0) + 1
        obj["metadata"] = {**obj["metadata"], "generation": generation}


def volume(obj: Object) -> None:
    obj["status"] = {"lastPhaseTransitionTime": obj["metadata"]["creationTimestamp"]}
    _protected(obj, "kubernetes.io/pv-protection")


def volume_phase(obj: Object, old: Object, now: str) -> None:
    """When a volume's phase changed last is said by who changes it, or by the server."""
    status, before = obj.get("status") or {}, old.get("status") or {}
    said, was = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        said = said or was
    elif said in (None, was):
        said = now
    if said is not None:
        obj["status"] = {**status, "lastPhaseTransitionTime": said}


def _protected(obj: Object, finalizer: str) -> None:
    """Pending, and kept while it is in use."""
    obj["status"] = {**(obj.get("status") or {}), "phase": "Pending"}
    _finalized(obj, finalizer)


def _finalized(obj: Object, finalizer: str) -> None:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def pod(obj: Object) -> None:
    """Phase and quality of service."""
    spec = dict(obj["spec"])
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    obj["spec"] = spec
    obj["status"] = {"phase": "Pending", "qosClass": quality(spec)}
    if spec.get("schedulingGates"):
        obj["status"]["conditions"] = [{**_GATED, "lastTransitionTime": obj["metadata"]["creationTimestamp"]}]


def pod_update(obj: Object, old: Object) -> None:
    kept = {key: old["spec"][key] for key in ("priority", "preemptionPolicy") if key in old["spec"]}
    obj["spec"] = tolerating({**kept, **obj["spec"]})
    status, before = obj.get("status") or {}, old.get("status") or {}
    if not status.get("qosClass") and before.get("qosClass"):
        obj["status"] = {**status, "qosClass": before["qosClass"]}


def tolerating(spec: Object) -> Object:
    """A Pod's spec with the tolerations that every Pod gets."""
    given = spec.get("tolerations") or []
    missing = [one for one in _NOT_READY if not any(_tolerates(toleration, one) for toleration in given)]
    return {**spec, "tolerations": [*given, *missing]} if missing else spec


def _tolerates(toleration: Object, wanted: Object) -> bool:
    key, effect = toleration.get("key"), toleration.get("effect")
    return (not key or key == wanted["key"]) and (not effect or effect == wanted["effect"])


def quality(spec: Object) -> str:
    """The quality of service class: Guaranteed, Burstable or BestEffort, by the Pod's resources or its containers'."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    counted = [spec] if spec.get("resources") is not None else containers
    asked, limits = (_amounts(counted, part) for part in ("requests", "limits"))
    if not any([*asked, *limits]):
        return "BestEffort"
    full = all(len(one) == len(_COMPUTE) for one in limits if one or counted is containers)
    return "Guaranteed" if full and _summed(asked) == _summed(limits) else "Burstable"


def _amounts(counted: list[Object], part: str) -> list[dict[str, Decimal]]:
    """The processors and memory of each, where they are more than nothing."""
    given = [(one.get("resources") or {}).get(part) or {} for one in counted]
    parsed = [{name: quantity.parse(one[name])[0] for name in _COMPUTE if name in one} for one in given]
    return [{name: amount for name, amount in one.items() if amount > 0} for one in parsed]


def _summed(amounts: list[dict[str, Decimal]]) -> dict[str, Decimal]:
    names = {name for one in amounts for name in one}
    return {name: sum((one.get(name, Decimal(0)) for one in amounts), Decimal(0)) for name in names}


def service(obj: Object) -> None:
    """Addresses and families of a single-stack IPv4 cluster; headless without a selector is dual-stack."""
    obj["spec"] = _with_node_ports(_with_addresses(obj["spec"], obj, {}), obj)
    obj["status"] = {"loadBalancer": {}}


def _with_addresses(spec: Object, obj: Object, before: Object) -> Object:
    if spec.get("type") == "ExternalName":
        return spec
    address = spec.get("clusterIP") or ("" if spec.get("clusterIPs") else _address(obj))
    open_to_both = address == "None" and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy") or ("RequireDualStack" if open_to_both else "SingleStack")
    families = spec.get("ipFamilies") or ["IPv4"]
    alone = len(families) == 1 and len(before.get("ipFamilies") or ()) < 2
    if open_to_both and policy != "SingleStack" and alone and spec.get("clusterIPs") in (None, [], [address]):
        families = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
    allocated = {"clusterIPs": [address], "ipFamilyPolicy": policy}
    return {**allocated, **spec, "ipFamilies": families, "clusterIP": address}


def _address(obj: Object) -> str:
    """An address of the service range, taken from the object's uid: there is no allocator, and none is needed to tell
    Services apart."""
    seed = int(obj["metadata"]["uid"].replace("-", "")[:8], 16)
    return f"10.{seed >> 16 & 255}.{seed >> 8 & 255}.{1 + seed % 254}"


def _with_node_ports(spec: Object, obj: Object) -> Object:
    """The spec with a port of the nodes for each port that needs one and has none."""
    if spec.get("type") not in _ON_NODES:
        return spec
    seed = int(obj["metadata"]["uid"].replace("-", "")[:8], 16)
    ports = spec.get("ports") or []
    if _allocates(spec):
        numbered = [
            port if port.get("nodePort") else {**port, "nodePort": 30000 + (seed + i) % 2768}
            for i, port in enumerate(ports)
        ]
        spec = {**spec, "ports": numbered}
    if _checked(spec) and not spec.get("healthCheckNodePort"):
        spec = {**spec, "healthCheckNodePort": 30000 + (seed + len(ports)) % 2768}
    return spec


def _kept_node_ports(spec: Object, before: Object) -> list[Object]:
    """The ports with the node ports that ports of the same name had, unless another one asks for those."""
    ports: list[Object] = spec.get("ports") or []
    known = {port.get("name"): port.get("nodePort") for port in before.get("ports") or ()}
    taken = {port["nodePort"] for port in ports if port.get("nodePort")}
    if not _allocates(spec):
        return ports
    return [
        {**port, "nodePort": kept}
        if not port.get("nodePort") and (kept := known.get(port.get("name"))) and kept not in taken
        else port
        for port in ports
    ]


def _allocates(spec: Object) -> bool:
    return spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False


def _checked(spec: Object) -> bool:
    """Whether nodes tell of their health to a load balancer that sends only to those with a Pod."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _without_type(spec: Object, before: Object) -> Object:
    """A spec of another type without what the old type needed, where the update did not change that too."""
    gone: set[str] = set()
    if spec.get("type") == "ExternalName" != before.get("type"):
        gone |= _CLUSTER
    if _checked(before) and not _checked(spec):
        gone.add("healthCheckNodePort")
    if before.get("type") == "LoadBalancer" != spec.get("type"):
        gone |= {"allocateLoadBalancerNodePorts", "loadBalancerClass"}
    if _reached(before) and not _reached(spec):
        gone.add("externalTrafficPolicy")
    spec = {key: value for key, value in spec.items() if key not in gone or value != before.get(key)}
    if before.get("type") in _ON_NODES and spec.get("type") not in _ON_NODES:
        known = {port.get("nodePort") for port in before.get("ports") or ()}
        ports = spec.get("ports") or []
        if all(port.get("nodePort") in known for port in ports if port.get("nodePort")):
            spec["ports"] = [{key: value for key, value in port.items() if key != "nodePort"} for port in ports]
    return spec


def _reached(spec: Object) -> bool:
    """Whether a Service is reached from outside."""
    return spec.get("type") in _ON_NODES or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def kept_addresses(obj: Object, old: Object) -> None:
    """An update that leaves out what was allocated keeps it, as far as the Service's type still needs it."""
    before = old["spec"]
    spec = _without_type(obj["spec"], before)
    if spec.get("type") != "ExternalName" and before.get("type") != "ExternalName":
        address = spec.get("clusterIP") or before.get("clusterIP")
        if address != before.get("clusterIP") and spec.get("clusterIPs") in (None, [], before.get("clusterIPs")):
            spec["clusterIPs"] = [address]
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(key) and before.get(key):
                spec[key] = before[key]
        if spec.get("ipFamilyPolicy") == "SingleStack":
            for key in ("clusterIPs", "ipFamilies"):
                if spec.get(key) == before.get(key):
                    spec[key] = (spec.get(key) or [])[:1]
        if spec.get("type") in _ON_NODES and before.get("type") in _ON_NODES:
            spec["ports"] = _kept_node_ports(spec, before)
            if _checked(spec) and _checked(before):
                spec.setdefault("healthCheckNodePort", before.get("healthCheckNodePort"))
    spec = {key: value for key, value in spec.items() if value is not None}
    obj["spec"] = _with_node_ports(_with_addresses(spec, obj, before), obj)
    if before.get("type") == "LoadBalancer" != spec.get("type") and (obj.get("status") or {}).get("loadBalancer"):
        obj["status"] = {**obj["status"], "loadBalancer": {}}


def labels_job_anew(obj: Object) -> bool:
    """Whether a Job is given the labels of its Pods whenever it is read, and kept without: it said none."""
    return not obj["metadata"].get("labels") and not obj["spec"].get("manualSelector")


def job(obj: Object) -> None:
    """Unless the selector is given by hand, a Job selects its Pods by its own uid."""
    spec = dict(obj["spec"])
    if not spec.get("manualSelector"):
        metadata = obj["metadata"]
        uid, name = metadata["uid"], metadata.get("name") or ""
        own = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        template = dict(spec.get("template") or {})
        inner = dict(template.get("metadata") or {})
        inner["labels"] = {**(inner.get("labels") or {}), **own}
        template["metadata"] = inner
        spec["template"] = template
        selector = dict(spec.get("selector") or {})
        wanted = {"batch.kubernetes.io/controller-uid": uid}
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **wanted}
        spec["selector"] = selector
        if not metadata.get("labels") or metadata["labels"] == (obj["spec"].get("template") or {}).get(
            "metadata", {}
        ).get("labels"):
            metadata["labels"] = inner["labels"]
    obj["spec"] = spec


def daemon_set(obj: Object) -> None:
    given = obj["metadata"].get("annotations") or {}
    if int(given.get(TEMPLATE_GENERATION) or 0) < 1:
        obj["metadata"]["annotations"] = {**given, TEMPLATE_GENERATION: "1"}


def stateful_set(obj: Object, old: Object | None = None) -> None:
    """How many may be away at once is behind a gate that is shut."""
    rolling = (obj["spec"].get("updateStrategy") or {}).get("rollingUpdate")
    if rolling and "maxUnavailable" in rolling:
        kept = {key: value for key, value in rolling.items() if key != "maxUnavailable"}
        obj["spec"] = {**obj["spec"], "updateStrategy": {**obj["spec"]["updateStrategy"], "rollingUpdate": kept}}


def lease(obj: Object, old: Object | None = None) -> None:
    """Coordinated elections are behind a gate that is shut."""
    shut = ("strategy", "preferredHolder")
    obj["spec"] = {key: value for key, value in (obj.get("spec") or {}).items() if key not in shut}


def service_account(obj: Object, old: Object | None = None) -> None:
    """Its secrets are known by their names alone."""
    if obj.get("secrets"):
        obj["secrets"] = [{"name": one["name"]} if one.get("name") else {} for one in obj["secrets"]]


def endpoint_slice(obj: Object, old: Object | None = None) -> None:
    """The old topology of endpoints is gone."""
    ends = [{k: v for k, v in end.items() if k != "deprecatedTopology"} for end in obj.get("endpoints") or ()]
    obj["endpoints"] = ends or obj.get("endpoints")


def daemon_set_update(obj: Object, old: Object) -> None:
    """The template's own generation lives in an annotation that writers cannot change."""
    before = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or "0"
    if obj["spec"].get("template") != old["spec"].get("template"):
        before = str(int(before) + 1)
    annotations = {**(obj["metadata"].get("annotations") or {}), TEMPLATE_GENERATION: before}
    obj["metadata"]["annotations"] = annotations


def definition(obj: Object) -> None:
    _coerce_defaults(obj)
    stored = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
    names = {"kind": "", "plural": ""}
    obj["status"] = {"acceptedNames": names, "conditions": None, "storedVersions": stored or None}


def _coerce_defaults(obj: Object) -> None:
    """What a real server's validation of a definition does to its defaults."""
    versions = obj["spec"].get("versions")
    made = [_coerced(version) for version in versions or ()]
    if any(new is not old for new, old in zip(made, versions or (), strict=True)):
        obj["spec"] = {**obj["spec"], "versions": made}


def _coerced(version: Object) -> Object:
    given = version.get("schema") or {}
    schema = given.get("openAPIV3Schema")
    made = coerce_defaults(schema) if schema else schema
    return version if made is schema else {**version, "schema": {**given, "openAPIV3Schema": made}}


def stored_versions(obj: Object, old: Object) -> None:
    """A new storage version is one that objects may be stored in from now on. /status may say any, but not none."""
    status = dict(obj.get("status") or {})
    stored = list(status.get("storedVersions") or ())
    if obj.get("status") is old.get("status"):
        _coerce_defaults(obj)
    if not stored or obj.get("status") is old.get("status"):
        storing = (version["name"] for version in obj["spec"].get("versions") or () if version.get("storage"))
        stored += [name for name in storing if name not in stored]
    obj["status"] = {**status, "storedVersions": stored}
