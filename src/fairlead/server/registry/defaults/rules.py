"""The defaults that follow from more than one field: each is asked with the object at hand and answers a changed copy,
or the value of one field, MISSING for none."""

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
_IMAGE: Final = re.compile(  # the name of an image: a real server takes any other one for one that does not change
    rf"(?:(?:{_HOST}|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?(?P<path>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_LONGEST: Final = 255
_DAY: Final = 3 * 60 * 60


def pull_policy(field: str) -> Callable[[Value], str]:
    """When the image that a field names is pulled."""

    def policy(obj: Value) -> str:
        found = _IMAGE.fullmatch(obj.get(field) or "")
        named = found is not None and len(found["path"]) <= _LONGEST
        latest = found is not None and named and not found["digest"] and found["tag"] in (None, "latest")
        return "Always" if latest else "IfNotPresent"

    return policy


def when(field: str, value: Any, *given: Any) -> Callable[[Value], Any]:
    """The value where another field holds one of these."""
    return lambda obj: value if obj.get(field) in given else MISSING


def requests_from_limits(pod: Value) -> Value:
    """A Pod's containers request what they are limited to, unless they say otherwise."""
    spec = pod.get("spec") or {}
    made = dict(spec)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            made[key] = [requested(container) for container in spec[key]]
    made = requested(made)
    return {**pod, "spec": made} if made != spec else pod


def requested(container: Value) -> Value:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests") or {}
    if not limits or all(name in requests for name in limits):
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def links(pod: Value) -> Value:
    spec = pod.get("spec") or {}
    return pod if "enableServiceLinks" in spec else {**pod, "spec": {**spec, "enableServiceLinks": True}}


def host_ports(pod: Value) -> Value:
    """With the host's network, a container's port is the host's: of Pods alone, not of their templates."""
    spec = pod.get("spec") or {}
    if not spec.get("hostNetwork"):
        return pod
    made = dict(spec)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            made[key] = [
                {**c, "ports": [{**p, "hostPort": p.get("hostPort") or p.get("containerPort", 0)} for p in c["ports"]]}
                if c.get("ports")
                else c
                for c in spec[key]
            ]
    return {**pod, "spec": made}


def service_account(spec: Value) -> Value:
    """The old and the new name of the field always agree; the new one wins."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {**spec, "serviceAccountName": name, "serviceAccount": name} if name else spec


def service_ports(spec: Value) -> Value:
    if spec.get("type") == "ExternalName" and not spec.get("ports"):
        return spec
    ports = [{**port, "targetPort": port.get("targetPort") or port.get("port", 0)} for port in spec.get("ports") or ()]
    return {**spec, "ports": ports} if ports and ports != spec["ports"] else spec


def modes(service: Value) -> Value:
    """Addresses of a load balancer are virtual unless they say otherwise."""
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    given = balancer.get("ingress") or []
    if (service.get("spec") or {}).get("type") != "LoadBalancer" or not given:
        return service
    made = [{**one, "ipMode": "VIP"} if one.get("ip") and one.get("ipMode") is None else one for one in given]
    return {**service, "status": {**service["status"], "loadBalancer": {**balancer, "ingress": made}}}


def affinity(spec: Value) -> Value:
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


def outer_policy(spec: Value) -> Any:
    """Services that are reached from outside."""
    outer = spec.get("type") in ("NodePort", "LoadBalancer") or spec.get("externalIPs")
    return "Cluster" if outer else MISSING


def no_source(volume: Value) -> Value:
    return {**volume, "emptyDir": {}} if len(volume) == 1 and "name" in volume else volume


def limit_range(item: Value) -> Value:
    """For containers: the default limit is the maximum, the default request the default limit, else the minimum."""
    if item.get("type") != "Container":
        return item
    limit = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **limit, **(item.get("defaultRequest") or {})}
    return {**item, **({"default": limit} if limit else {}), **({"defaultRequest": request} if request else {})}


def capacity(status: Value) -> Value:
    if not status.get("capacity") or status.get("allocatable"):
        return status
    return {**status, "allocatable": status["capacity"]}


def rolling(most: Value) -> Callable[[Value], Value]:
    """An update strategy: rolling unless told otherwise, with these bounds when it is."""

    def fill(strategy: Value) -> Value:
        made = {**strategy, "type": strategy.get("type") or "RollingUpdate"}
        if made["type"] == "RollingUpdate":
            made["rollingUpdate"] = {**most, **(strategy.get("rollingUpdate") or {})}
        return made

    return fill


def stateful_rolling(strategy: Value) -> Value:
    given = strategy.get("rollingUpdate")
    if strategy.get("type") and not (strategy["type"] == "RollingUpdate" and given is not None):
        return strategy
    return {
        **strategy,
        "type": strategy.get("type") or "RollingUpdate",
        "rollingUpdate": {"partition": 0, **(given or {})},
    }


def claim_templates(spec: Value) -> Value:
    if not spec.get("volumeClaimTemplates"):
        return spec
    typed = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", **c} for c in spec["volumeClaimTemplates"]]
    return {**spec, "volumeClaimTemplates": typed}


def job(job: Value) -> Value:
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


def template_generation(daemon_set: Value) -> Value:
    metadata = daemon_set.get("metadata") or {}
    annotations = {TEMPLATE_GENERATION: "0", **(metadata.get("annotations") or {})}
    return {**daemon_set, "metadata": {**metadata, "annotations": annotations}}


def pod_ranges(spec: Value) -> Value:
    """The first of a node's ranges and the list of them agree."""
    return _agreeing(spec, "podCIDR", "podCIDRs", lambda text: text)


def pod_ips(status: Value) -> Value:
    """The first of the addresses and the list of them agree."""
    return _agreeing(status, "podIP", "podIPs", lambda text: {"ip": text})


def _agreeing(value: Value, one: str, many: str, item: Callable[[str], Any]) -> Value:
    """The list follows the one, which counts where they differ; where only the list is there, its first is the one."""
    first, listed = value.get(one), value.get(many) or []
    if first:
        return value if listed[:1] == [item(first)] else {**value, many: [item(first)]}
    inner = listed[0].get("ip") if listed and type(listed[0]) is dict else next(iter(listed), None)
    return {**value, one: inner} if inner else value


def replication_controller(controller: Value) -> Value:
    spec = controller.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = controller.get("metadata") or {}
    if labels:
        spec = {**spec, "selector": spec.get("selector") or labels}
        metadata = {**metadata, "labels": metadata.get("labels") or labels}
    return {**controller, "metadata": metadata, "spec": spec}


def policy_types(spec: Value) -> list[str]:
    return ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def metrics(spec: Value) -> list[Value]:
    target = {"type": "Utilization", "averageUtilization": 80}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def scaling(spec: Value) -> Value:
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


def subject(subject: Value) -> Any:
    return RBAC if subject.get("kind") in ("User", "Group") else MISSING


def name_label(namespace: Value) -> Value:
    metadata = namespace.get("metadata") or {}
    if not metadata.get("name"):
        return namespace
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**namespace, "metadata": {**metadata, "labels": labels}}


def string_data(secret: Value) -> Value:
    """stringData is write-only: it becomes data."""
    given = secret.get("stringData")
    if not given:
        return secret
    data = {**(secret.get("data") or {}), **{key: b64encode(text.encode()).decode() for key, text in given.items()}}
    return {**{key: value for key, value in secret.items() if key != "stringData"}, "data": data}


def precedence(spec: Value) -> Value:
    return spec if spec.get("matchingPrecedence") else {**spec, "matchingPrecedence": 1000}


def crd_names(spec: Value) -> Value:
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    return {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}
