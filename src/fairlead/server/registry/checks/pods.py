"""Pods and the pod templates of workloads."""

from typing import Any, Final

from fairlead.server import causes, names
from fairlead.server.causes import Cause
from fairlead.server.metadata import labels_and_annotations
from fairlead.server.registry.checks.containers import container, identity
from fairlead.server.registry.checks.rules import choice, each, inside, needed, value, words
from fairlead.server.registry.checks.vocabulary import (
    Object,
    address,
    label,
    labels,
    one_of,
    qualified,
    subdomain,
)

_FIXED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_RESTARTS: Final = ("Always", "OnFailure", "Never")
_HOST_PATHS: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def pod(new: Object, old: Object | None) -> list[Cause]:
    if old is None:
        found = pod_spec(new["spec"], "spec")
        told = "cannot be set on create"
        return [*found, causes.forbidden("spec.ephemeralContainers", told)] if _ephemeral(new) else found
    if new["spec"] == old["spec"]:
        return []
    found = pod_spec(new["spec"], "spec")
    images = [cause for cause in found if cause.field.endswith(".image")]  # told of twice, and of nothing else then
    return found + (images or _update(new["spec"], old["spec"]))


def _ephemeral(pod: Object) -> bool:
    return bool(pod["spec"].get("ephemeralContainers"))


def _update(new: Object, old: Object) -> list[Cause]:
    """Of a Pod's spec only images, deadlines and tolerations may change."""
    for key in ("containers", "initContainers"):
        if len(old.get(key) or ()) != len(new.get(key) or ()):
            return [causes.forbidden(f"spec.{key}", "pod updates may not add or remove containers")]
    found: list[Cause] = []
    deadline, was = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if was is not None and deadline is None:
        told = "must not update from a positive integer to nil value"
        found.append(causes.invalid("spec.activeDeadlineSeconds", None, told))
    elif was is not None and deadline > was:
        told = "must be less than or equal to previous value"
        return [causes.invalid("spec.activeDeadlineSeconds", deadline, told)]
    found += _tolerations_kept(new, old) + _gates_kept(new, old)
    if old.get("schedulingGates"):
        found += _selector_kept(new, old)
    if _comparable(new, old) != _comparable(old, old):
        found.append(causes.forbidden("spec", _FIXED))
    return found


def _tolerations_kept(new: Object, old: Object) -> list[Cause]:
    """Tolerations may be added, and their seconds changed."""
    given, kept = (
        [
            {key: value for key, value in one.items() if key != "tolerationSeconds"}
            for one in spec.get("tolerations") or ()
        ]
        for spec in (new, old)
    )
    told = "existing toleration can not be modified except its tolerationSeconds"
    return [] if all(one in given for one in kept) else [causes.forbidden("spec.tolerations", told)]


def _gates_kept(new: Object, old: Object) -> list[Cause]:
    """Gates may only go."""
    known = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    return [
        causes.forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


def _selector_kept(new: Object, old: Object) -> list[Cause]:
    """Before its gates are open, a Pod may be bound to fewer nodes, never to others."""
    given, kept = (spec.get("nodeSelector") or {} for spec in (new, old))
    if kept.items() <= given.items():
        return []
    return [
        causes.invalid(
            "spec.nodeSelector", given, "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        )
    ]


def _comparable(spec: Object, old: Object) -> Object:
    """A spec without what may change."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if old.get("schedulingGates"):
        free.add("nodeSelector")
    kept: dict[str, Any] = {key: value for key, value in spec.items() if key not in free}
    for key in ("containers", "initContainers"):
        kept[key] = [{k: v for k, v in c.items() if k != "image"} for c in spec.get(key) or ()]
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    return kept


def pod_template(given: Object, path: str) -> list[Cause]:
    """The template of Pods: what it calls them, and their spec."""
    named = labels_and_annotations(given.get("metadata") or {}, path)
    return named + pod_spec(given.get("spec") or {}, f"{path}.spec")


def pod_spec(spec: Object, path: str) -> list[Cause]:
    """What is wrong with a pod's spec."""
    found: list[Cause] = []
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        here, name = f"{path}.volumes[{index}]", volume.get("name") or ""
        before = len(found)
        sources = [key for key in volume if key != "name"]
        found += [causes.forbidden(f"{here}.{key}", "may not specify more than 1 volume type") for key in sources[1:]]
        for rule in _VOLUME:
            found += rule(volume, None, here)
        found += label(f"{here}.name", name) if name else [causes.required(f"{here}.name")]
        if name in volumes:
            found.append(causes.duplicate(f"{here}.name", name))
        if len(found) == before:  # nothing mounts what is not sound
            volumes.add(name)
    seen: set[str] = set()
    if not spec.get("containers"):
        found.append(causes.required(f"{path}.containers"))
    for key in ("containers", "initContainers"):
        for index, one in enumerate(spec.get(key) or ()):
            here, name = f"{path}.{key}[{index}]", one.get("name") or ""
            found += container(one, here, volumes, repeated=name in seen, starting=key == "initContainers")
            seen.add(name)
    return found + [cause for rule in _RULES for cause in rule(spec, None, path)]


def _config(spec: Object, old: Object | None, path: str) -> list[Cause]:
    given = spec.get("dnsConfig") or {}
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        return [causes.required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")]
    servers = enumerate(given.get("nameservers") or ())
    return [cause for index, one in servers for cause in address(f"{path}.dnsConfig.nameservers[{index}]", one)]


def toleration(given: Object, old: Object | None, path: str) -> list[Cause]:
    found = qualified(f"{path}.key", given["key"]) if given.get("key") else []
    operator, effect = given.get("operator") or "Equal", given.get("effect")
    if not given.get("key") and operator != "Exists":
        told = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(causes.invalid(f"{path}.operator", given.get("operator") or "", told))
    if given.get("tolerationSeconds") is not None and effect != "NoExecute":
        told = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(causes.invalid(f"{path}.effect", effect or "", told))
    if operator == "Exists" and given.get("value"):
        told = "value must be empty when `operator` is 'Exists'"
        found.append(causes.invalid(f"{path}.operator", given["value"], told))
    found += one_of(f"{path}.operator", operator, ("Equal", "Exists"))
    return found + (one_of(f"{path}.effect", effect, _EFFECTS) if effect else [])


def _spread(given: Object, old: Object | None, path: str) -> list[Cause]:
    skew = given.get("maxSkew") or 0
    found = [] if skew > 0 else [causes.invalid(f"{path}.maxSkew", skew, "must be greater than zero")]
    if not given.get("topologyKey"):
        found.append(causes.required(f"{path}.topologyKey", "can not be empty"))
    ways = ("DoNotSchedule", "ScheduleAnyway")
    return found + one_of(f"{path}.whenUnsatisfiable", given.get("whenUnsatisfiable"), ways)


def _terms(selector: Object, old: Object | None, path: str) -> list[Cause]:
    told = "must have at least one node selector term"
    return [] if selector.get("nodeSelectorTerms") else [causes.required(f"{path}.nodeSelectorTerms", told)]


def _weight(given: Object, old: Object | None, path: str) -> list[Cause]:
    weight = given.get("weight") or 0
    told = "must be in the range 1-100"
    return [] if 1 <= weight <= 100 else [causes.invalid(f"{path}.weight", weight, told)]


def _mode(field: str, mode: int) -> list[Cause]:
    told = "must be a number between 0 and 0777 (octal), both inclusive"
    return [] if 0 <= mode <= 0o777 else [causes.invalid(field, mode, told)]


def _below(field: str, path: str) -> list[Cause]:
    """A path that stays below where it starts."""
    if path.startswith("/"):
        return [causes.invalid(field, path, "must be a relative path")]
    return [causes.invalid(field, path, "must not contain '..'")] if ".." in path.split("/") else []


def _absolute(field: str, path: str) -> list[Cause]:
    return [] if path.startswith("/") else [causes.invalid(field, path, "must be an absolute path")]


def _alias(given: Object, old: Object | None, path: str) -> list[Cause]:
    found = address(f"{path}.ip", given.get("ip") or "")
    hosts = enumerate(given.get("hostnames") or ())
    return found + [cause for index, host in hosts for cause in subdomain(f"{path}.hostnames[{index}]", host)]


def _deadline(field: str, seconds: int) -> list[Cause]:
    told = "must be between 1 and 2147483647, inclusive"
    return [] if 1 <= seconds <= 2**31 - 1 else [causes.invalid(field, seconds, told)]


def _system(spec: Object, old: Object | None, path: str) -> list[Cause]:
    given = (spec.get("os") or {}).get("name")
    return one_of(f"{path}.os", given, ("linux", "windows")) if spec.get("os") is not None else []


_MODE: Final = value("defaultMode", _mode)
_ITEMS: Final = each("items", needed("key"), value("path", _below))
_VOLUME: Final = (
    inside("hostPath", needed("path"), choice("type", _HOST_PATHS)),
    inside("configMap", needed("name"), _MODE, _ITEMS),
    inside("secret", needed("secretName"), _MODE, _ITEMS),
    inside("persistentVolumeClaim", needed("claimName")),
    inside("projected", _MODE),
    inside("downwardAPI", _MODE),
    inside("nfs", needed("server"), needed("path"), value("path", _absolute)),
    inside("csi", needed("driver")),
)
_RULES: Final = (
    choice("restartPolicy", _RESTARTS, always=True),
    choice("dnsPolicy", _DNS, always=True),
    value("nodeSelector", labels),
    inside("securityContext", *(value(key, identity) for key in ("runAsUser", "runAsGroup", "fsGroup"))),
    inside("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", _terms),
    each("affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", _weight),
    each("affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution", _weight),
    each("affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution", _weight),
    _config,
    each("readinessGates", value("conditionType", qualified)),
    each("schedulingGates", value("name", qualified)),
    each("topologySpreadConstraints", _spread),
    words("serviceAccountName", names.subdomain),
    words("nodeName", names.subdomain),
    value("activeDeadlineSeconds", _deadline),
    words("hostname", names.label),
    words("subdomain", names.label),
    each("tolerations", toleration),
    each("hostAliases", _alias),
    words("priorityClassName", names.subdomain),
    words("runtimeClassName", names.subdomain),
    choice("preemptionPolicy", ("PreemptLowerPriority", "Never")),
    _system,
)
