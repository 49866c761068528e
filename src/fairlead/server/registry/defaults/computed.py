"""Default values that depend on other fields.

A function takes an object. It returns a changed copy, or the default value of one field, where MISSING means none.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from fairlead.server.schema.nodes import MISSING

Value = dict[str, Any]
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
RBAC: Final = "rbac.authorization.k8s.io"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST: Final = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
_IMAGE: Final = re.compile(  # a real server treats every other name like an image with a fixed tag
    rf"(?:(?:{_HOST}|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?(?P<path>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_MAX_PATH: Final = 255
_AFFINITY_TIMEOUT: Final = 3 * 60 * 60


def default_pull_policy(field: str) -> Callable[[Value], str]:
    """Return a function that computes the default imagePullPolicy from the image in `field`."""

    def policy(obj: Value) -> str:
        image = _IMAGE.fullmatch(obj.get(field) or "")
        if image is None or len(image["path"]) > _MAX_PATH or image["digest"] or image["tag"] not in (None, "latest"):
            return "IfNotPresent"
        return "Always"

    return policy


def default_when(field: str, default: Any, *values: Any) -> Callable[[Value], Any]:
    """Return a function that gives `default` if `field` has one of `values`, else MISSING."""
    return lambda obj: default if obj.get(field) in values else MISSING


def copy_limits_to_requests(pod: Value) -> Value:
    """Set the resource requests of a Pod and its containers to their limits where requests are missing."""
    spec = pod.get("spec") or {}
    result = dict(spec)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            result[key] = [_set_requests(container) for container in spec[key]]
    result = _set_requests(result)
    return {**pod, "spec": result} if result != spec else pod


def _set_requests(container: Value) -> Value:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests") or {}
    if not limits or all(name in requests for name in limits):
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def enable_service_links(pod: Value) -> Value:
    spec = pod.get("spec") or {}
    return pod if "enableServiceLinks" in spec else {**pod, "spec": {**spec, "enableServiceLinks": True}}


def set_host_ports(pod: Value) -> Value:
    """Set the hostPort of each container port of a Pod with hostNetwork. Pod templates do not get it."""
    spec = pod.get("spec") or {}
    if not spec.get("hostNetwork"):
        return pod
    result = dict(spec)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            result[key] = [
                {**c, "ports": [{**p, "hostPort": p.get("hostPort") or p.get("containerPort", 0)} for p in c["ports"]]}
                if c.get("ports")
                else c
                for c in spec[key]
            ]
    return {**pod, "spec": result}


def sync_service_account(spec: Value) -> Value:
    """Set serviceAccountName and its old name serviceAccount to the same value. serviceAccountName wins."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {**spec, "serviceAccountName": name, "serviceAccount": name} if name else spec


def set_target_ports(spec: Value) -> Value:
    if spec.get("type") == "ExternalName" and not spec.get("ports"):
        return spec
    ports = [{**port, "targetPort": port.get("targetPort") or port.get("port", 0)} for port in spec.get("ports") or ()]
    return {**spec, "ports": ports} if ports and ports != spec["ports"] else spec


def set_ip_modes(service: Value) -> Value:
    """Set the ipMode of load balancer addresses to VIP."""
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    ingress = balancer.get("ingress") or []
    if (service.get("spec") or {}).get("type") != "LoadBalancer" or not ingress:
        return service
    ingress = [{**item, "ipMode": "VIP"} if item.get("ip") and item.get("ipMode") is None else item for item in ingress]
    return {**service, "status": {**service["status"], "loadBalancer": {**balancer, "ingress": ingress}}}


def set_session_affinity(spec: Value) -> Value:
    affinity = spec.get("sessionAffinity") or "None"
    result = {**spec, "sessionAffinity": affinity}
    if affinity == "None":
        result.pop("sessionAffinityConfig", None)
    elif (
        affinity == "ClientIP"
        and ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds") is None
    ):
        result["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_TIMEOUT}}
    return result


def default_external_traffic_policy(spec: Value) -> Any:
    """Return Cluster as the externalTrafficPolicy of a Service that is reachable from outside the cluster."""
    is_external = spec.get("type") in ("NodePort", "LoadBalancer") or spec.get("externalIPs")
    return "Cluster" if is_external else MISSING


def set_empty_dir(volume: Value) -> Value:
    return {**volume, "emptyDir": {}} if len(volume) == 1 and "name" in volume else volume


def set_limit_range_defaults(item: Value) -> Value:
    """Set `default` and `defaultRequest` of a LimitRange item for containers.

    The default limit is the maximum. The default request is the default limit, or else the minimum.
    """
    if item.get("type") != "Container":
        return item
    limit = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **limit, **(item.get("defaultRequest") or {})}
    return {**item, **({"default": limit} if limit else {}), **({"defaultRequest": request} if request else {})}


def set_allocatable(status: Value) -> Value:
    if not status.get("capacity") or status.get("allocatable"):
        return status
    return {**status, "allocatable": status["capacity"]}


def set_rolling_update(bounds: Value) -> Callable[[Value], Value]:
    """Return a function that makes RollingUpdate the default strategy, and sets its `bounds`."""

    def apply(strategy: Value) -> Value:
        result = {**strategy, "type": strategy.get("type") or "RollingUpdate"}
        if result["type"] == "RollingUpdate":
            result["rollingUpdate"] = {**bounds, **(strategy.get("rollingUpdate") or {})}
        return result

    return apply


def set_stateful_set_strategy(strategy: Value) -> Value:
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") and not (strategy["type"] == "RollingUpdate" and rolling is not None):
        return strategy
    return {
        **strategy,
        "type": strategy.get("type") or "RollingUpdate",
        "rollingUpdate": {"partition": 0, **(rolling or {})},
    }


def set_claim_template_types(spec: Value) -> Value:
    if not spec.get("volumeClaimTemplates"):
        return spec
    typed = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", **c} for c in spec["volumeClaimTemplates"]]
    return {**spec, "volumeClaimTemplates": typed}


def set_job_defaults(job: Value) -> Value:
    """Copy the labels of the Pod template to a Job.

    Set completions to 1 if neither completions nor parallelism is set.
    """
    spec = job.get("spec") or {}
    result = dict(spec)
    if "completions" not in spec and "parallelism" not in spec:
        result["completions"] = 1
    result.setdefault("parallelism", 1)
    result.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    result.setdefault("completionMode", "NonIndexed")
    result.setdefault("suspend", False)
    result.setdefault("manualSelector", False)
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    result.setdefault("podReplacementPolicy", replacement)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = job.get("metadata") or {}
    if labels and not metadata.get("labels"):
        metadata = {**metadata, "labels": labels}
    return {**job, "metadata": metadata, "spec": result}


def set_template_generation(daemon_set: Value) -> Value:
    metadata = daemon_set.get("metadata") or {}
    annotations = {TEMPLATE_GENERATION: "0", **(metadata.get("annotations") or {})}
    return {**daemon_set, "metadata": {**metadata, "annotations": annotations}}


def sync_pod_cidrs(spec: Value) -> Value:
    """Set podCIDR to the first of podCIDRs, or podCIDRs to podCIDR."""
    return _sync_first(spec, "podCIDR", "podCIDRs", lambda cidr: cidr)


def sync_pod_ips(status: Value) -> Value:
    """Set podIP to the first of podIPs, or podIPs to podIP."""
    return _sync_first(status, "podIP", "podIPs", lambda ip: {"ip": ip})


def _sync_first(value: Value, single: str, plural: str, item: Callable[[str], Any]) -> Value:
    """Make the field `single` and the first item of the list `plural` agree.

    If both are set and differ, `single` wins.
    """
    first, items = value.get(single), value.get(plural) or []
    if first:
        return value if items[:1] == [item(first)] else {**value, plural: [item(first)]}
    inner = items[0].get("ip") if items and type(items[0]) is dict else next(iter(items), None)
    return {**value, single: inner} if inner else value


def set_controller_labels(controller: Value) -> Value:
    spec = controller.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = controller.get("metadata") or {}
    if labels:
        spec = {**spec, "selector": spec.get("selector") or labels}
        metadata = {**metadata, "labels": metadata.get("labels") or labels}
    return {**controller, "metadata": metadata, "spec": spec}


def default_policy_types(spec: Value) -> list[str]:
    return ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def default_metrics(spec: Value) -> list[Value]:
    target = {"type": "Utilization", "averageUtilization": 80}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def set_scaling_behavior(spec: Value) -> Value:
    if "behavior" not in spec:
        return spec
    behavior = spec["behavior"]
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
    scale_up = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [pods, percent],
        **(behavior.get("scaleUp") or {}),
    }
    scale_down = {"selectPolicy": "Max", "policies": [percent], **(behavior.get("scaleDown") or {})}
    return {**spec, "behavior": {**behavior, "scaleUp": scale_up, "scaleDown": scale_down}}


def default_subject_group(subject: Value) -> Any:
    return RBAC if subject.get("kind") in ("User", "Group") else MISSING


def set_namespace_label(namespace: Value) -> Value:
    metadata = namespace.get("metadata") or {}
    if not metadata.get("name"):
        return namespace
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


def merge_string_data(secret: Value) -> Value:
    """Move the values of stringData, which is write-only, into data."""
    texts = secret.get("stringData")
    if not texts:
        return secret
    data = {**(secret.get("data") or {}), **{key: b64encode(text.encode()).decode() for key, text in texts.items()}}
    return {**{key: value for key, value in secret.items() if key != "stringData"}, "data": data}


def set_precedence(spec: Value) -> Value:
    return spec if spec.get("matchingPrecedence") else {**spec, "matchingPrecedence": 1000}


def set_crd_names(spec: Value) -> Value:
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    return {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}
