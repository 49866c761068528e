"""Pods and the pod templates of workloads."""

from typing import Any, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation import security
from fairlead.server.registry.validation.containers import (
    Around,
    container,
    file_volumes,
    host_ports,
    padded,
    resources,
)
from fairlead.server.registry.validation.placing import affinity, spreads, toleration
from fairlead.server.registry.validation.rules import Rule, choice, each, inside, value, words
from fairlead.server.registry.validation.vocabulary import (
    Object,
    address,
    label,
    labels,
    one_of,
    qualified,
    subdomain,
)
from fairlead.server.registry.validation.volumes import volumes
from fairlead.server.write import names
from fairlead.server.write.metadata import validate_labels_and_annotations

_FIXED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_RESTARTS: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def pod(new: Object, old: Object | None) -> list[FieldError]:
    if old is None:
        found = pod_spec(new["spec"], "spec", of_pod=True)
        told = "cannot be set on create"
        return [*found, field_errors.forbidden("spec.ephemeralContainers", told)] if _ephemeral(new) else found
    if new["spec"] == old["spec"]:
        return []
    found = pod_spec(new["spec"], "spec", of_pod=True)
    images = [cause for cause in found if cause.field.endswith(".image")]  # told of twice, and of nothing else then
    return found + (images or _update(new["spec"], old["spec"]))


def _ephemeral(pod: Object) -> bool:
    return bool(pod["spec"].get("ephemeralContainers"))


def _update(new: Object, old: Object) -> list[FieldError]:
    """Of a Pod's spec only images, deadlines and tolerations may change."""
    for key in ("containers", "initContainers"):
        if len(old.get(key) or ()) != len(new.get(key) or ()):
            return [field_errors.forbidden(f"spec.{key}", "pod updates may not add or remove containers")]
    found: list[FieldError] = []
    deadline, was = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if was is not None and deadline is None:
        told = "must not update from a positive integer to nil value"
        found.append(field_errors.invalid("spec.activeDeadlineSeconds", None, told))
    elif was is not None and deadline > was:
        told = "must be less than or equal to previous value"
        return [field_errors.invalid("spec.activeDeadlineSeconds", deadline, told)]
    found += _tolerations_kept(new, old) + _gates_kept(new, old)
    if old.get("schedulingGates"):
        found += _selector_kept(new, old)
    if _comparable(new, old) != _comparable(old, old):
        found.append(field_errors.forbidden("spec", _FIXED))
    return found


def _tolerations_kept(new: Object, old: Object) -> list[FieldError]:
    """Tolerations may be added, and their seconds changed."""
    given, kept = (
        [
            {key: value for key, value in one.items() if key != "tolerationSeconds"}
            for one in spec.get("tolerations") or ()
        ]
        for spec in (new, old)
    )
    told = "existing toleration can not be modified except its tolerationSeconds"
    return [] if all(one in given for one in kept) else [field_errors.forbidden("spec.tolerations", told)]


def _gates_kept(new: Object, old: Object) -> list[FieldError]:
    """Gates may only go."""
    known = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    return [
        field_errors.forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


def _selector_kept(new: Object, old: Object) -> list[FieldError]:
    """Before its gates are open, a Pod may be bound to fewer nodes, never to others."""
    given, kept = (spec.get("nodeSelector") or {} for spec in (new, old))
    if kept.items() <= given.items():
        return []
    return [
        field_errors.invalid(
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


def pod_template(given: Object, path: str) -> list[FieldError]:
    """The template of Pods: what it calls them, and their spec."""
    named = validate_labels_and_annotations(given.get("metadata") or {}, path)
    found = named + pod_spec(given.get("spec") or {}, f"{path}.spec")
    told = "ephemeral containers not allowed in pod template"
    given_later = (given.get("spec") or {}).get("ephemeralContainers")
    return [*found, field_errors.forbidden(f"{path}.spec.ephemeralContainers", told)] if given_later else found


def pod_spec(spec: Object, path: str, *, of_pod: bool = False) -> list[FieldError]:
    """What is wrong with a pod's spec; `of_pod`: not of a template, which may leave things open."""
    found, sound = volumes(spec, path, of_pod=of_pod)
    found += _claims(spec, path)
    around = Around(
        volumes=sound,
        claims={claim.get("name") or "" for claim in spec.get("resourceClaims") or ()},
        restart=spec.get("restartPolicy") or "",
        grace=spec.get("terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers") is not False,
        of_pod=of_pod,
    )
    seen: set[str] = set()
    if not spec.get("containers"):
        found.append(field_errors.required(f"{path}.containers"))
    placed = [(one, f"{path}.containers[{index}]") for index, one in enumerate(spec.get("containers") or ())]
    for one, here in placed:
        found += container(one, here, around, repeated=(one.get("name") or "") in seen, starting=False)
        seen.add(one.get("name") or "")
    found += host_ports(placed)
    starting = [(one, f"{path}.initContainers[{index}]") for index, one in enumerate(spec.get("initContainers") or ())]
    for one, here in starting:
        found += container(one, here, around, repeated=(one.get("name") or "") in seen, starting=True)
        found += host_ports([(one, f"{path}.initContainers[0]")])
        seen.add(one.get("name") or "")
    rules = (_on_host(of_pod=of_pod), *_RULES)
    found += [cause for rule in rules for cause in rule(spec, None, path)]
    every = [*starting, *placed]
    of_files = {volume.get("name") or "": volume for volume in spec.get("volumes") or ()}
    found += [cause for one, here in every for cause in file_volumes(one, here, of_files)]
    if not of_pod:
        return found
    found += _tokens(spec, path)
    return found + [cause for one, here in [*placed, *starting] for cause in padded(one, here)]


def _tokens(spec: Object, path: str) -> list[FieldError]:
    """Tokens are those of an account, which a template's Pods may get later."""
    if spec.get("serviceAccountName"):
        return []
    told = "must not be specified when serviceAccountName is not set"
    return [
        field_errors.forbidden(f"{path}.volumes[{at}].projected.sources[{index}].serviceAccountToken", told)
        for at, volume in enumerate(spec.get("volumes") or ())
        for index, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]


def _claims(spec: Object, path: str) -> list[FieldError]:
    """Claims of devices, each made for the Pod or named by it."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, one in enumerate(spec.get("resourceClaims") or ()):
        here, name = f"{path}.resourceClaims[{index}]", one.get("name") or ""
        if not name:
            found.append(field_errors.required(f"{here}.name"))
        elif name in seen:
            found.append(field_errors.duplicate(f"{here}.name", name))
        else:
            found += label(f"{here}.name", name)
        seen.add(name)
        given = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if one.get(key) is not None]
        if len(given) == 2:
            told = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            found.append(field_errors.invalid(here, one, told))
        if not given:
            told = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(field_errors.invalid(here, one, told))
        for key in given:
            found += [field_errors.invalid(f"{here}.{key}", one[key], told) for told in names.subdomain(one[key])]
    return found


def _on_host(*, of_pod: bool) -> Rule:
    """On the host's network, ports are the host's."""

    def rule(spec: Object, old: Object | None, path: str) -> list[FieldError]:
        if not spec.get("hostNetwork"):
            return []
        told = "must match `containerPort` when `hostNetwork` is true"
        ports = [
            (
                f"{path}.containers[{at}].ports[{index}].hostPort",
                port.get("hostPort") or 0,
                port.get("containerPort") or 0,
            )
            for at, one in enumerate(spec.get("containers") or ())
            for index, port in enumerate(one.get("ports") or ())
        ]
        wrong = [(field, host) for field, host, own in ports if (of_pod or host) and host != own]
        return [field_errors.invalid(field, host, told) for field, host in wrong]

    return rule


def _config(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """How a Pod finds names."""
    given, here, alone = spec.get("dnsConfig"), f"{path}.dnsConfig", spec.get("dnsPolicy") == "None"
    if alone and given is None:
        return [field_errors.required(here, "must provide `dnsConfig` when `dnsPolicy` is None")]
    servers, searches = ((given or {}).get(key) or [] for key in ("nameservers", "searches"))
    if alone and not servers:
        told = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [field_errors.required(f"{here}.nameservers", told)]
    found: list[FieldError] = []
    if len(servers) > _SERVERS:
        found.append(
            field_errors.invalid(f"{here}.nameservers", servers, f"must not have more than {_SERVERS} nameservers")
        )
    found += [cause for index, one in enumerate(servers) for cause in address(f"{here}.nameservers[{index}]", one)]
    if len(searches) > _SEARCHES:
        told = f"must not have more than {_SEARCHES} search paths"
        found.append(field_errors.invalid(f"{here}.searches", searches, told))
    if len(" ".join(searches)) > _SEARCHED:
        told = f"must not have more than {_SEARCHED} characters (including spaces) in the search list"
        found.append(field_errors.invalid(f"{here}.searches", searches, told))
    for index, text in enumerate(searches):
        if text != ".":
            name = text.removesuffix(".")
            wrong = names.subdomain_or_underscore(name)
            found += [field_errors.invalid(f"{here}.searches[{index}]", name, told) for told in wrong]
    nameless = [index for index, one in enumerate((given or {}).get("options") or ()) if not one.get("name")]
    return found + [field_errors.required(f"{here}.options[{index}]", "must not be empty") for index in nameless]


def _gates(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """What holds a Pod back, each by its name and once."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, one in enumerate(spec.get("schedulingGates") or ()):
        field, name = f"{path}.schedulingGates[{index}]", one.get("name") or ""
        found += qualified(field, name)
        if name in seen:
            found.append(field_errors.duplicate(field, name))
        seen.add(name)
    return found


def _alone(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """Users of its own go with nothing of the host's."""
    if spec.get("hostUsers") is not False:
        return []
    shared = [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    told = "when `hostUsers` is false"
    return [field_errors.forbidden(f"{path}.{field}", told) for key, field in shared if spec.get(key)]


def _called(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    name, field = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if name is None:
        return []
    against = [key for key in ("setHostnameAsFQDN", "hostNetwork") if spec.get(key)]
    found = [field_errors.forbidden(field, f"may not be specified when {key} is true") for key in against]
    found += [field_errors.too_long(field, 64)] if len(name) > 64 else []
    return found + subdomain(field, name)


def _alias(given: Object, old: Object | None, path: str) -> list[FieldError]:
    found = address(f"{path}.ip", given.get("ip") or "")
    hosts = enumerate(given.get("hostnames") or ())
    return found + [cause for index, host in hosts for cause in subdomain(f"{path}.hostnames[{index}]", host)]


def _deadline(field: str, seconds: int) -> list[FieldError]:
    told = "must be between 1 and 2147483647, inclusive"
    return [] if 1 <= seconds <= 2**31 - 1 else [field_errors.invalid(field, seconds, told)]


def _system(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    if spec.get("os") is None:
        return []
    given = spec["os"].get("name")
    return one_of(f"{path}.os", given, ("linux", "windows")) if given else [field_errors.required(f"{path}.os.name")]


_SERVERS: Final = 3
_SEARCHES: Final = 32
_SEARCHED: Final = 2048
_RULES: Final = (
    choice("restartPolicy", _RESTARTS, always=True),
    choice("dnsPolicy", _DNS, always=True),
    value("nodeSelector", labels),
    security.of_pod,
    affinity,
    _config,
    each("readinessGates", value("conditionType", qualified)),
    _gates,
    spreads,
    _alone,
    _called,
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
    inside("overhead", lambda given, old, path: resources({"limits": given}, path)),
    _system,
)
