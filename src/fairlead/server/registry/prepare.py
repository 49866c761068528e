"""The fields that the server sets when a built-in object is created or updated, besides its default values.

Each function replaces top-level values of the object or of its metadata. It never changes deeper values, because other
objects share them.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from fairlead.server.authentication.users import User
from fairlead.server.registry.defaults import TEMPLATE_GENERATION
from fairlead.server.schema import codec, quantity
from fairlead.server.schema.crd_schema.defaults import coerce_defaults
from fairlead.server.schema.nodes import Node

Object = dict[str, Any]
_DEFAULT_TOLERATIONS: Final = tuple(
    {"key": f"node.kubernetes.io/{condition}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for condition in ("not-ready", "unreachable")
)
_OLD_DATA_SOURCES: Final = ((None, "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_NOT_OF_EXTERNAL_NAMES: Final = frozenset(  # the fields that a Service loses when its type becomes ExternalName
    {
        "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", "externalTrafficPolicy",
        "healthCheckNodePort", "allocateLoadBalancerNodePorts", "loadBalancerClass",
    }
)  # fmt: skip
_NODE_PORT_TYPES: Final = ("NodePort", "LoadBalancer")
_COMPUTE: Final = ("cpu", "memory")
_GATED_CONDITION: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
    "lastProbeTime": None,
}


def build_status_clearer(schema: Node) -> Callable[[Object], None]:
    """Return a function that clears the status of a new object, because only /status can write it."""
    node = schema.fields["status"]

    def clear(obj: Object) -> None:
        if node.go.is_pointer or (zero_value := codec.zero_value(node)) is None:
            obj.pop("status", None)
        else:
            obj["status"] = zero_value

    return clear


def prepare_namespace(obj: Object) -> None:
    metadata = obj["metadata"]
    if metadata.get("name"):  # it can be generated after the defaults are set
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    finalizers = (obj.get("spec") or {}).get("finalizers") or []
    if "kubernetes" not in finalizers:
        finalizers = [*finalizers, "kubernetes"]
    obj["spec"] = {**(obj.get("spec") or {}), "finalizers": finalizers}
    obj["status"] = {"phase": "Active"}


def prepare_claim(obj: Object) -> None:
    obj["status"] = {}
    obj["spec"] = _set_data_sources(obj["spec"], {})
    _set_pending(obj, "kubernetes.io/pvc-protection")


def prepare_claim_update(obj: Object, old: Object) -> None:
    obj["spec"] = _set_data_sources(obj.get("spec") or {}, old.get("spec") or {})


def _set_data_sources(spec: Object, old: Object) -> Object:
    """Return a claim spec in which dataSource and dataSourceRef agree. dataSource allows only claims and snapshots."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    is_validated = reference is not None or "dataSource" in old or "dataSourceRef" in old
    if (
        source is not None
        and not is_validated
        and (source.get("apiGroup"), source.get("kind")) not in _OLD_DATA_SOURCES
    ):
        source, spec = None, {key: value for key, value in spec.items() if key != "dataSource"}
    if source is not None and reference is None:
        return {**spec, "dataSourceRef": source}
    if source is None and reference is not None and not reference.get("namespace"):
        return {**spec, "dataSource": reference}
    return spec


def prepare_node(obj: Object) -> None:
    """Add the not-ready taint to a new Node if it is missing, and remove spec.configSource."""
    spec = dict(obj.get("spec") or {})
    spec.pop("configSource", None)
    taints, not_ready = spec.get("taints") or [], {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    has_taint = any({"key": taint.get("key"), "effect": taint.get("effect")} == not_ready for taint in taints)
    obj["spec"] = spec if has_taint else {**spec, "taints": [*taints, not_ready]}


def set_certificate_requester(obj: Object, user: User) -> None:
    """Set username, uid, groups and extra in a CertificateSigningRequest to those of the requesting user."""
    requester = ("username", "uid", "groups", "extra")
    spec = {key: value for key, value in (obj.get("spec") or {}).items() if key not in requester}
    obj["spec"] = spec | user.to_user_info()


def keep_certificate_request(obj: Object, old: Object) -> None:
    obj["spec"] = old["spec"]


def protect_attributes_class(obj: Object) -> None:
    """Add the finalizer that protects a VolumeAttributesClass in use from deletion."""
    _add_finalizer(obj, "kubernetes.io/vac-protection")


def update_driver_generation(obj: Object, old: Object) -> None:
    """Increase metadata.generation of a CSIDriver whose spec changed. A new driver has no generation."""
    if obj.get("spec") != old.get("spec"):
        generation = old["metadata"].get("generation", 0) + 1
        obj["metadata"] = {**obj["metadata"], "generation": generation}


def prepare_volume(obj: Object) -> None:
    obj["status"] = {"lastPhaseTransitionTime": obj["metadata"]["creationTimestamp"]}
    _set_pending(obj, "kubernetes.io/pv-protection")


def set_volume_phase_time(obj: Object, old: Object, now: str) -> None:
    """Set lastPhaseTransitionTime of a volume whose phase changed, unless the writer sets it."""
    status, before = obj.get("status") or {}, old.get("status") or {}
    time, old_time = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        time = time or old_time
    elif time in (None, old_time):
        time = now
    if time is not None:
        obj["status"] = {**status, "lastPhaseTransitionTime": time}


def _set_pending(obj: Object, finalizer: str) -> None:
    """Set the phase of a new claim or volume to Pending, and add the finalizer that protects it while in use."""
    obj["status"] = {**(obj.get("status") or {}), "phase": "Pending"}
    _add_finalizer(obj, finalizer)


def _add_finalizer(obj: Object, finalizer: str) -> None:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def prepare_pod(obj: Object) -> None:
    """Set the phase and the QoS class of a new Pod."""
    spec = dict(obj["spec"])
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    obj["spec"] = spec
    obj["status"] = {"phase": "Pending", "qosClass": compute_qos_class(spec)}
    if spec.get("schedulingGates"):
        obj["status"]["conditions"] = [{**_GATED_CONDITION, "lastTransitionTime": obj["metadata"]["creationTimestamp"]}]


def prepare_pod_update(obj: Object, old: Object) -> None:
    """Keep the priority fields that admission set on a Pod, and add the default tolerations."""
    priority = {key: old["spec"][key] for key in ("priority", "preemptionPolicy") if key in old["spec"]}
    obj["spec"] = add_default_tolerations({**priority, **obj["spec"]})
    status, before = obj.get("status") or {}, old.get("status") or {}
    if not status.get("qosClass") and before.get("qosClass"):
        obj["status"] = {**status, "qosClass": before["qosClass"]}


def add_default_tolerations(spec: Object) -> Object:
    """Return a Pod spec with the not-ready and unreachable tolerations that every Pod gets."""
    tolerations = spec.get("tolerations") or []
    missing_tolerations = [
        item for item in _DEFAULT_TOLERATIONS if not any(_covers(other, item) for other in tolerations)
    ]
    return {**spec, "tolerations": [*tolerations, *missing_tolerations]} if missing_tolerations else spec


def _covers(toleration: Object, other: Object) -> bool:
    key, effect = toleration.get("key"), toleration.get("effect")
    return (not key or key == other["key"]) and (not effect or effect == other["effect"])


def compute_qos_class(spec: Object) -> str:
    """Return Guaranteed, Burstable or BestEffort, from the resources of the Pod or else of its containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    owners = [spec] if spec.get("resources") is not None else containers
    requests, limits = (_compute_amounts(owners, amount_key) for amount_key in ("requests", "limits"))
    if not any([*requests, *limits]):
        return "BestEffort"
    has_all_limits = all(len(amounts) == len(_COMPUTE) for amounts in limits if amounts or owners is containers)
    return "Guaranteed" if has_all_limits and _sum_amounts(requests) == _sum_amounts(limits) else "Burstable"


def _compute_amounts(owners: list[Object], amount_key: str) -> list[dict[str, Decimal]]:
    """Return the CPU and memory `amount_key` ("requests" or "limits") of each owner, without zeros."""
    resources = [(owner.get("resources") or {}).get(amount_key) or {} for owner in owners]
    parsed = [{name: quantity.parse(item[name])[0] for name in _COMPUTE if name in item} for item in resources]
    return [{name: amount for name, amount in amounts.items() if amount > 0} for amounts in parsed]


def _sum_amounts(amounts: list[dict[str, Decimal]]) -> dict[str, Decimal]:
    names = {name for item in amounts for name in item}
    return {name: sum((item.get(name, Decimal(0)) for item in amounts), Decimal(0)) for name in names}


def prepare_service(obj: Object) -> None:
    """Allocate the cluster IP and the node ports of a new Service, in a single-stack IPv4 cluster.

    A headless Service without a selector is dual-stack.
    """
    obj["spec"] = _allocate_node_ports(_allocate_addresses(obj["spec"], obj, {}), obj)
    obj["status"] = {"loadBalancer": {}}


def _allocate_addresses(spec: Object, obj: Object, before: Object) -> Object:
    if spec.get("type") == "ExternalName":
        return spec
    address = spec.get("clusterIP") or ("" if spec.get("clusterIPs") else _generate_address(obj))
    allows_both = address == "None" and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy") or ("RequireDualStack" if allows_both else "SingleStack")
    families = spec.get("ipFamilies") or ["IPv4"]
    is_single = len(families) == 1 and len(before.get("ipFamilies") or ()) < 2
    if allows_both and policy != "SingleStack" and is_single and spec.get("clusterIPs") in (None, [], [address]):
        families = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
    allocated = {"clusterIPs": [address], "ipFamilyPolicy": policy}
    return {**allocated, **spec, "ipFamilies": families, "clusterIP": address}


def _generate_address(obj: Object) -> str:
    """Return an IP address of the service range, computed from the uid: the server has no allocator."""
    seed = int(obj["metadata"]["uid"].replace("-", "")[:8], 16)
    return f"10.{seed >> 16 & 255}.{seed >> 8 & 255}.{1 + seed % 254}"


def _allocate_node_ports(spec: Object, obj: Object) -> Object:
    """Return a Service spec with a node port for each port that needs one."""
    if spec.get("type") not in _NODE_PORT_TYPES:
        return spec
    seed = int(obj["metadata"]["uid"].replace("-", "")[:8], 16)
    ports = spec.get("ports") or []
    if _allocates_node_ports(spec):
        numbered = [
            port if port.get("nodePort") else {**port, "nodePort": 30000 + (seed + i) % 2768}
            for i, port in enumerate(ports)
        ]
        spec = {**spec, "ports": numbered}
    if _has_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec = {**spec, "healthCheckNodePort": 30000 + (seed + len(ports)) % 2768}
    return spec


def _keep_node_ports(spec: Object, before: Object) -> list[Object]:
    """Return the ports with the node ports of old ports of the same name, unless another port asks for those."""
    ports: list[Object] = spec.get("ports") or []
    old_ports = {port.get("name"): port.get("nodePort") for port in before.get("ports") or ()}
    used_ports = {port["nodePort"] for port in ports if port.get("nodePort")}
    if not _allocates_node_ports(spec):
        return ports
    return [
        {**port, "nodePort": number}
        if not port.get("nodePort") and (number := old_ports.get(port.get("name"))) and number not in used_ports
        else port
        for port in ports
    ]


def _allocates_node_ports(spec: Object) -> bool:
    return spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False


def _has_health_check(spec: Object) -> bool:
    """Return whether a Service needs a healthCheckNodePort: a LoadBalancer with externalTrafficPolicy Local."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _drop_fields_of_old_type(spec: Object, before: Object) -> Object:
    """Return a Service spec without the fields that only its old type needs, unless the update changes them."""
    removed: set[str] = set()
    if spec.get("type") == "ExternalName" != before.get("type"):
        removed |= _NOT_OF_EXTERNAL_NAMES
    if _has_health_check(before) and not _has_health_check(spec):
        removed.add("healthCheckNodePort")
    if before.get("type") == "LoadBalancer" != spec.get("type"):
        removed |= {"allocateLoadBalancerNodePorts", "loadBalancerClass"}
    if _is_external(before) and not _is_external(spec):
        removed.add("externalTrafficPolicy")
    spec = {key: value for key, value in spec.items() if key not in removed or value != before.get(key)}
    if before.get("type") in _NODE_PORT_TYPES and spec.get("type") not in _NODE_PORT_TYPES:
        old_ports = {port.get("nodePort") for port in before.get("ports") or ()}
        ports = spec.get("ports") or []
        if all(port.get("nodePort") in old_ports for port in ports if port.get("nodePort")):
            spec["ports"] = [{key: value for key, value in port.items() if key != "nodePort"} for port in ports]
    return spec


def _is_external(spec: Object) -> bool:
    """Return whether clients outside the cluster can reach a Service."""
    return spec.get("type") in _NODE_PORT_TYPES or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def prepare_service_update(obj: Object, old: Object) -> None:
    """Keep allocated addresses and ports that an update omits, if the type of the Service still needs them."""
    before = old["spec"]
    spec = _drop_fields_of_old_type(obj["spec"], before)
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
        if spec.get("type") in _NODE_PORT_TYPES and before.get("type") in _NODE_PORT_TYPES:
            spec["ports"] = _keep_node_ports(spec, before)
            if _has_health_check(spec) and _has_health_check(before):
                spec.setdefault("healthCheckNodePort", before.get("healthCheckNodePort"))
    spec = {key: value for key, value in spec.items() if value is not None}
    obj["spec"] = _allocate_node_ports(_allocate_addresses(spec, obj, before), obj)
    if before.get("type") == "LoadBalancer" != spec.get("type") and (obj.get("status") or {}).get("loadBalancer"):
        obj["status"] = {**obj["status"], "loadBalancer": {}}


def job_gets_labels_on_read(obj: Object) -> bool:
    """Return whether a real server stores a Job without labels, and adds its Pods' labels on each read."""
    return not obj["metadata"].get("labels") and not obj["spec"].get("manualSelector")


def prepare_job(obj: Object) -> None:
    """Add the generated selector and labels with the uid of a Job, unless manualSelector is set."""
    spec = dict(obj["spec"])
    if not spec.get("manualSelector"):
        metadata = obj["metadata"]
        uid, name = metadata["uid"], metadata.get("name") or ""
        generated = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        template = dict(spec.get("template") or {})
        template_metadata = dict(template.get("metadata") or {})
        template_metadata["labels"] = {**(template_metadata.get("labels") or {}), **generated}
        template["metadata"] = template_metadata
        spec["template"] = template
        selector = dict(spec.get("selector") or {})
        by_uid = {"batch.kubernetes.io/controller-uid": uid}
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **by_uid}
        spec["selector"] = selector
        old_labels = (obj["spec"].get("template") or {}).get("metadata", {}).get("labels")
        if not metadata.get("labels") or metadata["labels"] == old_labels:
            metadata["labels"] = template_metadata["labels"]
    obj["spec"] = spec


def prepare_daemon_set(obj: Object) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    if int(annotations.get(TEMPLATE_GENERATION) or 0) < 1:
        obj["metadata"]["annotations"] = {**annotations, TEMPLATE_GENERATION: "1"}


def drop_max_unavailable(obj: Object, old: Object | None = None) -> None:
    """Remove maxUnavailable from a StatefulSet, because its feature gate is off by default."""
    rolling = (obj["spec"].get("updateStrategy") or {}).get("rollingUpdate")
    if rolling and "maxUnavailable" in rolling:
        rolling = {key: value for key, value in rolling.items() if key != "maxUnavailable"}
        obj["spec"] = {**obj["spec"], "updateStrategy": {**obj["spec"]["updateStrategy"], "rollingUpdate": rolling}}


def drop_leader_election_fields(obj: Object, old: Object | None = None) -> None:
    """Remove the fields of coordinated leader election from a Lease, because their feature gate is off by default."""
    disabled = ("strategy", "preferredHolder")
    obj["spec"] = {key: value for key, value in (obj.get("spec") or {}).items() if key not in disabled}


def drop_secret_details(obj: Object, old: Object | None = None) -> None:
    """Remove everything but the names from the secrets of a ServiceAccount."""
    if obj.get("secrets"):
        obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in obj["secrets"]]


def drop_deprecated_topology(obj: Object, old: Object | None = None) -> None:
    """Remove deprecatedTopology from the endpoints of an EndpointSlice."""
    endpoints = [{k: v for k, v in item.items() if k != "deprecatedTopology"} for item in obj.get("endpoints") or ()]
    obj["endpoints"] = endpoints or obj.get("endpoints")


def prepare_daemon_set_update(obj: Object, old: Object) -> None:
    """Set the template generation annotation of a DaemonSet, which clients cannot change."""
    generation = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or "0"
    if obj["spec"].get("template") != old["spec"].get("template"):
        generation = str(int(generation) + 1)
    annotations = {**(obj["metadata"].get("annotations") or {}), TEMPLATE_GENERATION: generation}
    obj["metadata"]["annotations"] = annotations


def prepare_definition(obj: Object) -> None:
    _coerce_defaults(obj)
    stored = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
    names = {"kind": "", "plural": ""}
    obj["status"] = {"acceptedNames": names, "conditions": None, "storedVersions": stored or None}


def _coerce_defaults(obj: Object) -> None:
    """Convert the default values in the schemas of a CRD as a real server does while it validates the CRD."""
    versions = obj["spec"].get("versions")
    coerced = [_coerce_version(version) for version in versions or ()]
    if any(new is not old for new, old in zip(coerced, versions or (), strict=True)):
        obj["spec"] = {**obj["spec"], "versions": coerced}


def _coerce_version(version: Object) -> Object:
    validation = version.get("schema") or {}
    schema = validation.get("openAPIV3Schema")
    coerced = coerce_defaults(schema) if schema else schema
    return version if coerced is schema else {**version, "schema": {**validation, "openAPIV3Schema": coerced}}


def prepare_definition_update(obj: Object, old: Object) -> None:
    """Add a new storage version of a CRD to status.storedVersions.

    A write of /status can set other versions, but cannot clear the list.
    """
    status = dict(obj.get("status") or {})
    stored = list(status.get("storedVersions") or ())
    if obj.get("status") is old.get("status"):
        _coerce_defaults(obj)
    if not stored or obj.get("status") is old.get("status"):
        storage = (version["name"] for version in obj["spec"].get("versions") or () if version.get("storage"))
        stored += [name for name in storage if name not in stored]
    obj["status"] = {**status, "storedVersions": stored}
