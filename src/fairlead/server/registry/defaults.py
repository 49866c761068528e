"""Defaults of the built-in kinds, by Go type: what a server fills in when it decodes an object.

A value is filled in where the field is absent; a function is asked with the object at hand and answers the value, or
MISSING for none. Types that hold none of these are not walked.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from fairlead.server.schema.nodes import MISSING, Node

Value = dict[str, Any]
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
RBAC: Final = "rbac.authorization.k8s.io"
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_MODE: Final = 0o644
_DAY: Final = 3 * 60 * 60


def default(node: Node, obj: Value) -> Value:
    """The object with the defaults of its type and of those inside; the very object when nothing is added."""
    filled: Value = _walk(node, obj)
    return filled


def _walk(node: Node, value: Any) -> Any:
    below, mine, whole = _plan(node)
    if not (below or mine or whole):
        return value
    if type(value) is list:
        if node.items is None:
            return value
        items = [_walk(node.items, item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if type(value) is not dict:
        return value
    made = value
    for rule in whole:
        changed = rule(made)
        made = made if changed == made else changed
    for key, wanted in mine:
        if made.get(key) is None or made[key] == "":
            found = wanted(made) if callable(wanted) else wanted
            if found is not MISSING:
                made = {**made, key: found}
    if node.go.kind == "map" and node.values is not None:
        below = dict.fromkeys(value, node.values)
    for key, child in below.items():
        inner = made.get(key)
        if inner is not None:
            kept = _walk(child, inner)
            if kept is not inner:
                made = {**made, key: kept}
    return made


_Plan = tuple[dict[str, Node], tuple[tuple[str, Any], ...], tuple[Callable[[Value], Value], ...]]


@cache
def _plan(node: Node) -> _Plan:
    """The children worth walking, the fields to fill, the rules on the whole."""
    name = node.go.name
    below = {key: child for key, child in node.fields.items() if _reaches(child)}
    if node.items is not None and _reaches(node.items):
        below = {"": node.items}
    if node.values is not None and _reaches(node.values):
        below = {"": node.values}
    return below, tuple(FIELDS.get(name, {}).items()), WHOLES.get(name, ())


def _reaches(node: Node, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a type with defaults stands at or below this node."""
    name = node.go.name
    if name in FIELDS or name in WHOLES:
        return True
    if name:
        if name in seen:
            return False
        known = _reached.get(name)
        if known is None:
            known = any(_reaches(child, seen | {name}) for child in node.fields.values())
            if not seen:
                _reached[name] = known
        return known
    return any(_reaches(child, seen) for child in (node.items, node.values) if child is not None)


_reached: dict[str, bool] = {}


def _pull_policy(container: Value) -> Any:
    image: str = container.get("image") or ""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if tag not in ("", "latest") else "Always"


def _when(field: str, value: Any, *given: Any) -> Callable[[Value], Any]:
    """The value where another field holds one of these."""
    return lambda obj: value if obj.get(field) in given else MISSING


def _requests_from_limits(pod: Value) -> Value:
    """A Pod's containers request what they are limited to, unless they say otherwise."""
    spec = pod.get("spec") or {}
    made = dict(spec)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            made[key] = [_requested(container) for container in spec[key]]
    made = _requested(made)
    return {**pod, "spec": made} if made != spec else pod


def _requested(container: Value) -> Value:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests") or {}
    if not limits or all(name in requests for name in limits):
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def _links(pod: Value) -> Value:
    spec = pod.get("spec") or {}
    return pod if "enableServiceLinks" in spec else {**pod, "spec": {**spec, "enableServiceLinks": True}}


def _host_ports(spec: Value) -> Value:
    """With the host's network, a container's port is the host's."""
    if not spec.get("hostNetwork"):
        return spec
    made = dict(spec)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            made[key] = [
                {**c, "ports": [{**p, "hostPort": p.get("hostPort") or p.get("containerPort", 0)} for p in c["ports"]]}
                if c.get("ports")
                else c
                for c in spec[key]
            ]
    return made


def _service_account(spec: Value) -> Value:
    """The old and the new name of the field always agree; the new one wins."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {**spec, "serviceAccountName": name, "serviceAccount": name} if name else spec


def _service_ports(spec: Value) -> Value:
    if spec.get("type") == "ExternalName" and not spec.get("ports"):
        return spec
    ports = [{**port, "targetPort": port.get("targetPort") or port.get("port", 0)} for port in spec.get("ports") or ()]
    return {**spec, "ports": ports} if ports and ports != spec["ports"] else spec


def _modes(service: Value) -> Value:
    """Addresses of a load balancer are virtual unless they say otherwise."""
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    given = balancer.get("ingress") or []
    if (service.get("spec") or {}).get("type") != "LoadBalancer" or not given:
        return service
    made = [{**one, "ipMode": "VIP"} if one.get("ip") and one.get("ipMode") is None else one for one in given]
    return {**service, "status": {**service["status"], "loadBalancer": {**balancer, "ingress": made}}}


def _affinity(spec: Value) -> Value:
    affinity = spec.get("sessionAffinity") or "None"
    made = {**spec, "sessionAffinity": affinity}
    if affinity == "None":
        made.pop("sessionAffinityConfig", None)
    elif (
        affinity == "ClientIP"
        and ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds") is None
    ):
        made["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _DAY}}
    return made


def _outer_policy(spec: Value) -> Any:
    """Services that are reached from outside."""
    outer = spec.get("type") in ("NodePort", "LoadBalancer") or spec.get("externalIPs")
    return "Cluster" if outer else MISSING


def _no_source(volume: Value) -> Value:
    return {**volume, "emptyDir": {}} if len(volume) == 1 and "name" in volume else volume


def _limit_range(item: Value) -> Value:
    """For containers: the default limit is the maximum, the default request the default limit, else the minimum."""
    if item.get("type") != "Container":
        return item
    limit = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **limit, **(item.get("defaultRequest") or {})}
    return {**item, **({"default": limit} if limit else {}), **({"defaultRequest": request} if request else {})}


def _capacity(status: Value) -> Value:
    if not status.get("capacity"):
        return status
    return {**status, "allocatable": {**status["capacity"], **(status.get("allocatable") or {})}}


def _rolling(most: Value) -> Callable[[Value], Value]:
    """An update strategy: rolling unless told otherwise, with these bounds when it is."""

    def fill(strategy: Value) -> Value:
        made = {**strategy, "type": strategy.get("type") or "RollingUpdate"}
        if made["type"] == "RollingUpdate":
            made["rollingUpdate"] = {**most, **(strategy.get("rollingUpdate") or {})}
        return made

    return fill


def _stateful_rolling(strategy: Value) -> Value:
    given = strategy.get("rollingUpdate")
    if strategy.get("type") and not (strategy["type"] == "RollingUpdate" and given is not None):
        return strategy
    return {
        **strategy,
        "type": strategy.get("type") or "RollingUpdate",
        "rollingUpdate": {"partition": 0, **(given or {})},
    }


def _claim_templates(spec: Value) -> Value:
    if not spec.get("volumeClaimTemplates"):
        return spec
    typed = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", **c} for c in spec["volumeClaimTemplates"]]
    return {**spec, "volumeClaimTemplates": typed}


def _job(job: Value) -> Value:
    """Labels come from the template; one completion unless only parallelism is given."""
    spec = job.get("spec") or {}
    made = dict(spec)
    if "completions" not in spec and "parallelism" not in spec:
        made["completions"] = 1
    made.setdefault("parallelism", 1)
    made.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    made.setdefault("completionMode", "NonIndexed")
    made.setdefault("suspend", False)
    made.setdefault("manualSelector", False)
    failing = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    made.setdefault("podReplacementPolicy", failing)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = job.get("metadata") or {}
    if labels and not metadata.get("labels"):
        metadata = {**metadata, "labels": labels}
    return {**job, "metadata": metadata, "spec": made}


def _template_generation(daemon_set: Value) -> Value:
    metadata = daemon_set.get("metadata") or {}
    annotations = {TEMPLATE_GENERATION: "0", **(metadata.get("annotations") or {})}
    return {**daemon_set, "metadata": {**metadata, "annotations": annotations}}


def _pod_ranges(spec: Value) -> Value:
    """The first of a node's ranges and the list of them agree."""
    first = spec.get("podCIDR")
    return {**spec, "podCIDRs": [first]} if first and not spec.get("podCIDRs") else spec


def _pod_ips(status: Value) -> Value:
    """The first of the addresses and the list of them agree."""
    first = status.get("podIP")
    return {**status, "podIPs": [{"ip": first}]} if first and not status.get("podIPs") else status


def _replication_controller(controller: Value) -> Value:
    spec = controller.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = controller.get("metadata") or {}
    if labels:
        spec = {**spec, "selector": spec.get("selector") or labels}
        metadata = {**metadata, "labels": metadata.get("labels") or labels}
    return {**controller, "metadata": metadata, "spec": spec}


def _policy_types(spec: Value) -> list[str]:
    return ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _metrics(spec: Value) -> list[Value]:
    target = {"type": "Utilization", "averageUtilization": 80}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _scaling(spec: Value) -> Value:
    if "behavior" not in spec:
        return spec
    given = spec["behavior"]
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
    up = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [pods, percent],
        **(given.get("scaleUp") or {}),
    }
    down = {"selectPolicy": "Max", "policies": [percent], **(given.get("scaleDown") or {})}
    return {**spec, "behavior": {**given, "scaleUp": up, "scaleDown": down}}


def _subject(subject: Value) -> Any:
    return RBAC if subject.get("kind") in ("User", "Group") else MISSING


def _name_label(namespace: Value) -> Value:
    metadata = namespace.get("metadata") or {}
    if not metadata.get("name"):
        return namespace
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


def _string_data(secret: Value) -> Value:
    """stringData is write-only: it becomes data."""
    given = secret.get("stringData")
    if not given:
        return secret
    from base64 import b64encode

    data = {**(secret.get("data") or {}), **{key: b64encode(text.encode()).decode() for key, text in given.items()}}
    return {**{key: value for key, value in secret.items() if key != "stringData"}, "data": data}


def _precedence(spec: Value) -> Value:
    return spec if spec.get("matchingPrecedence") else {**spec, "matchingPrecedence": 1000}


def _crd_names(spec: Value) -> Value:
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    return {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}


_CONTAINER: Final = {
    "imagePullPolicy": _pull_policy,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_WEBHOOK: Final = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
FIELDS: Final[dict[str, dict[str, Any]]] = {
    "core.v1.Container": _CONTAINER,
    "core.v1.EphemeralContainer": _CONTAINER,
    "core.v1.ContainerPort": {"protocol": "TCP"},
    "core.v1.Probe": _PROBE,
    "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.v1.GRPCAction": {"service": ""},
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    "core.v1.HostPathVolumeSource": {"type": ""},
    "core.v1.SecretVolumeSource": {"defaultMode": _MODE},
    "core.v1.ConfigMapVolumeSource": {"defaultMode": _MODE},
    "core.v1.DownwardAPIVolumeSource": {"defaultMode": _MODE},
    "core.v1.ProjectedVolumeSource": {"defaultMode": _MODE},
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core.v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core.v1.RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "core.v1.ServiceSpec": {
        "type": "ClusterIP",
        "internalTrafficPolicy": _when("type", "Cluster", "ClusterIP", "NodePort", "LoadBalancer"),
        "externalTrafficPolicy": _outer_policy,
        "allocateLoadBalancerNodePorts": _when("type", True, "LoadBalancer"),
    },
    "core.v1.ServicePort": {"protocol": "TCP"},
    "core.v1.Secret": {"type": "Opaque"},
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeStatus": {"phase": "Pending"},
    "core.v1.ReplicationControllerSpec": {"replicas": 1},
    "core.v1.NamespaceStatus": {"phase": "Active"},
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "apps.v1.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "apps.v1.StatefulSetSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {},
    },
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.v1.ReplicaSetSpec": {"replicas": 1},
    "batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1, "metrics": _metrics},
    "rbac.v1.RoleRef": {"apiGroup": RBAC},
    "rbac.v1.Subject": {"apiGroup": _subject},
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "networking.v1.NetworkPolicySpec": {"policyTypes": _policy_types},
    "networking.v1.IngressClassParametersReference": {"scope": "Cluster"},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "storage.v1.CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    },
    "scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "admissionregistration.v1.ValidatingWebhook": _WEBHOOK,
    "admissionregistration.v1.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    "admissionregistration.v1.RuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.ServiceReference": {"port": 443},
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    },
    "apiextensions.v1.ServiceReference": {"port": 443},
    "apiregistration.v1.ServiceReference": {"port": 443},
}
WHOLES: Final[dict[str, tuple[Callable[[Value], Value], ...]]] = {
    "core.v1.Pod": (_requests_from_limits, _links),
    "core.v1.PodSpec": (_host_ports, _service_account),
    "core.v1.Volume": (_no_source,),
    "core.v1.Service": (_modes,),
    "core.v1.ServiceSpec": (_service_ports, _affinity),
    "core.v1.Namespace": (_name_label,),
    "core.v1.NodeSpec": (_pod_ranges,),
    "core.v1.NodeStatus": (_capacity,),
    "core.v1.LimitRangeItem": (_limit_range,),
    "core.v1.Secret": (_string_data,),
    "core.v1.ReplicationController": (_replication_controller,),
    "apps.v1.DeploymentStrategy": (_rolling({"maxUnavailable": "25%", "maxSurge": "25%"}),),
    "apps.v1.DaemonSetUpdateStrategy": (_rolling({"maxUnavailable": 1, "maxSurge": 0}),),
    "apps.v1.StatefulSetUpdateStrategy": (_stateful_rolling,),
    "apps.v1.StatefulSetSpec": (_claim_templates,),
    "apps.v1.DaemonSet": (_template_generation,),
    "core.v1.PodStatus": (_pod_ips,),
    "batch.v1.Job": (_job,),
    "autoscaling.v2.HorizontalPodAutoscalerSpec": (_scaling,),
    "flowcontrol.v1.FlowSchemaSpec": (_precedence,),
    "apiextensions.v1.CustomResourceDefinitionSpec": (_crd_names,),
}
