"""Pods and the pod templates of workloads."""

from typing import Any, Final

from fairlead.server import causes
from fairlead.server.causes import Cause
from fairlead.server.registry.checks.vocabulary import PROTOCOLS, Object, label, one_of, port, port_name
from fairlead.server.schema import quantity

_FIXED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_RESTARTS: Final = ("Always", "OnFailure", "Never")
_PULLS: Final = ("Always", "IfNotPresent", "Never")
_SOURCES: Final = {  # what a volume's source must name
    "hostPath": "path", "configMap": "name", "secret": "secretName", "persistentVolumeClaim": "claimName",
}  # fmt: skip
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def pod(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        return pod_spec(new["spec"], "spec")
    if new["spec"] == old["spec"]:
        before, after = (o.get("status") or {} for o in (old, new))
        if before.get("qosClass") and before["qosClass"] != after.get("qosClass"):
            return [causes.invalid("status.qosClass", after.get("qosClass") or "", "field is immutable")]
        return []
    return pod_spec(new["spec"], "spec") + _update(new["spec"], old["spec"])


def _update(new: Object, old: Object) -> list[Cause]:
    """Of a Pod's spec only images, deadlines and tolerations may change."""
    for key in ("containers", "initContainers"):
        if len(old.get(key) or ()) != len(new.get(key) or ()):
            return [causes.forbidden(f"spec.{key}", "pod updates may not add or remove containers")]
    deadline, was = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if was is not None and deadline != was:
        if deadline is None:
            return [
                causes.invalid(
                    "spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value"
                )
            ]
        if deadline > was:
            return [
                causes.invalid("spec.activeDeadlineSeconds", deadline, "must be less than or equal to previous value")
            ]
    tolerations = new.get("tolerations") or []
    if not all(one in tolerations for one in old.get("tolerations") or ()):
        told = "existing toleration can not be modified except its tolerationSeconds"
        seconds = "tolerationSeconds"
        bare = [{k: v for k, v in one.items() if k != seconds} for one in tolerations]
        if not all({k: v for k, v in one.items() if k != seconds} in bare for one in old.get("tolerations") or ()):
            return [causes.forbidden("spec.tolerations", told)]
    return [] if _comparable(new, old) == _comparable(old, old) else [causes.forbidden("spec", _FIXED)]


def _comparable(spec: Object, old: Object) -> Object:
    """A spec without what may change."""
    kept: dict[str, Any] = {k: v for k, v in spec.items() if k not in ("activeDeadlineSeconds", "tolerations")}
    for key in ("containers", "initContainers"):
        kept[key] = [{k: v for k, v in c.items() if k != "image"} for c in spec.get(key) or ()]
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    return kept


def pod_spec(spec: Object, path: str) -> list[Cause]:
    """What is wrong with a pod's spec."""
    found: list[Cause] = []
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        here, name = f"{path}.volumes[{index}]", volume.get("name") or ""
        sources = [key for key in volume if key != "name"]
        found += [causes.forbidden(f"{here}.{key}", "may not specify more than 1 volume type") for key in sources[1:]]
        for source, key in _SOURCES.items():
            if volume.get(source) is not None and not volume[source].get(key):
                found.append(causes.required(f"{here}.{source}.{key}"))
        found += label(f"{here}.name", name) if name else [causes.required(f"{here}.name")]
        if name in volumes:
            found.append(causes.duplicate(f"{here}.name", name))
        volumes.add(name)
    seen: set[str] = set()
    if not spec.get("containers"):
        found.append(causes.required(f"{path}.containers"))
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            here, name = f"{path}.{key}[{index}]", container.get("name") or ""
            found += _container(container, here, volumes, name in seen)
            seen.add(name)
    if spec.get("restartPolicy") not in _RESTARTS:
        found.append(causes.not_supported(f"{path}.restartPolicy", spec.get("restartPolicy") or "", _RESTARTS))
    found += one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    return found


def _container(container: Object, path: str, volumes: set[str], repeated: bool) -> list[Cause]:
    name = container.get("name") or ""
    found = label(f"{path}.name", name) if name else [causes.required(f"{path}.name")]
    if repeated and name:
        found.append(causes.duplicate(f"{path}.name", name))
    image = container.get("image") or ""
    if not image:
        found.append(causes.required(f"{path}.image"))
    elif image != image.strip():
        found.append(causes.invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    for index, one in enumerate(container.get("ports") or ()):
        found += _port(one, f"{path}.ports[{index}]")
    for index, one in enumerate(container.get("env") or ()):
        here = f"{path}.env[{index}]"
        if not one.get("name"):
            found.append(causes.required(f"{here}.name"))
        if one.get("valueFrom") is not None and one.get("value"):
            told = "may not be specified when `value` is not empty"
            found.append(causes.invalid(f"{here}.valueFrom", "", told))
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        here = f"{path}.volumeMounts[{index}]"
        if not mount.get("name"):
            found.append(causes.required(f"{here}.name"))
        elif mount["name"] not in volumes:
            found.append(Cause("FieldValueNotFound", f"{here}.name", f"Not found: {causes.quoted(mount['name'])}"))
        if not mount.get("mountPath"):
            found.append(causes.required(f"{here}.mountPath"))
    found += one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULLS)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        for action in ("httpGet", "tcpSocket"):
            given = (container.get(probe) or {}).get(action)
            found += port(f"{path}.{probe}.{action}.port", given.get("port")) if given is not None else []
    for key in ("limits", "requests"):
        for resource, amount in ((container.get("resources") or {}).get(key) or {}).items():
            if quantity.parse(amount)[0] < 0:
                told = "must be greater than or equal to 0"
                found.append(causes.invalid(f"{path}.resources.{key}[{resource}]", amount, told))
    limits = (container.get("resources") or {}).get("limits") or {}
    for resource, asked in ((container.get("resources") or {}).get("requests") or {}).items():
        if resource in limits and quantity.parse(asked)[0] > quantity.parse(limits[resource])[0]:
            told = f"must be less than or equal to {resource} limit of {limits[resource]}"
            found.append(causes.invalid(f"{path}.resources.requests", asked, told))
    return found


def _port(one: Object, path: str) -> list[Cause]:
    found = (
        [causes.invalid(f"{path}.name", one["name"], told) for told in port_name(one["name"])]
        if one.get("name")
        else []
    )
    number = one.get("containerPort") or 0
    if not number:
        found.append(causes.required(f"{path}.containerPort"))
    elif not 1 <= number <= 65535:
        found.append(causes.invalid(f"{path}.containerPort", number, "must be between 1 and 65535, inclusive"))
    found += one_of(f"{path}.protocol", one.get("protocol"), PROTOCOLS)
    return found
