"""What is wrong with a container of a pod."""

import re
from typing import Final, NamedTuple

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation import security
from fairlead.server.registry.validation.mounts import devices, mounts, not_found
from fairlead.server.registry.validation.references import (
    OF_CONTAINERS,
    field_of_pod,
    file_key,
    key_of,
    resource_of_container,
    variable_name,
)
from fairlead.server.registry.validation.rules import Rule, at_least, choice, inside, needed
from fairlead.server.registry.validation.vocabulary import PROTOCOLS, Object, label, one_of, port, port_name, qualified
from fairlead.server.schema import quantity
from fairlead.server.write import names

_PULLS: Final = ("Always", "IfNotPresent", "Never")
_REFERENCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


_RESTARTS: Final = ("Always", "Never", "OnFailure")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_HEADER_TOLD: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')"
)


class Around(NamedTuple):
    """What of its Pod a container's checks look at."""

    volumes: dict[str, Object]  # those that may be mounted
    claims: set[str]  # the names of its resource claims
    restart: str
    grace: int | None  # seconds until it is killed
    host_users: bool
    of_pod: bool  # not of a template


def container(given: Object, path: str, around: Around, *, repeated: bool, starting: bool) -> list[FieldError]:
    """`starting`: it runs before the others, and probes only if it stays."""
    name = given.get("name") or ""
    found = label(f"{path}.name", name) if name else [field_errors.required(f"{path}.name")]
    image = given.get("image") or ""
    if not image:
        found.append(field_errors.required(f"{path}.image"))
    policies = ("File", "FallbackToLogsOnError")
    found += one_of(f"{path}.terminationMessagePolicy", given.get("terminationMessagePolicy"), policies)
    found += _ports(given.get("ports") or [], f"{path}.ports")
    for index, one in enumerate(given.get("env") or ()):
        found += _variable(one, f"{path}.env[{index}]")
    found += _variables(given.get("envFrom") or [], f"{path}.envFrom")
    found += mounts(given, path, around.volumes) + devices(given, path, around.volumes)
    found += one_of(f"{path}.imagePullPolicy", given.get("imagePullPolicy"), _PULLS)
    found += resources(given.get("resources") or {}, f"{path}.resources")
    found += _claimed(given.get("resources") or {}, f"{path}.resources.claims", around.claims)
    found += _resized(given.get("resizePolicy") or [], f"{path}.resizePolicy", around.restart)
    found += security.of_container(given, path, host_users=around.host_users)
    if starting:
        found += _restarted(given, path)
    if repeated and name:
        found.append(field_errors.duplicate(f"{path}.name", name))
    found += _living(given, path, around, passing=starting and given.get("restartPolicy") != "Always")
    return found if starting else found + _restarted(given, path)


def padded(given: Object, path: str) -> list[FieldError]:
    """An image's name with space around it, which templates may have."""
    image = given.get("image") or ""
    told = "must not have leading or trailing whitespace"
    return [field_errors.invalid(f"{path}.image", image, told)] if image != image.strip() else []


def _restarted(given: Object, path: str) -> list[FieldError]:
    policy, rules = given.get("restartPolicy"), given.get("restartPolicyRules") or []
    if policy is None:
        told = "must specify restartPolicy when restart rules are used"
        return [field_errors.required(f"{path}.restartPolicy", told)] if rules else []
    return choice("restartPolicy", _RESTARTS)(given, None, path)


def _living(given: Object, path: str, around: Around, *, passing: bool) -> list[FieldError]:
    """Hooks and probes, which a container that passes has not."""
    keys = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    if passing:
        told = "may not be set for init containers without restartPolicy=Always"
        return [field_errors.forbidden(f"{path}.{key}", told) for key in keys if given.get(key) is not None]
    found: list[FieldError] = []
    for hook in ("postStart", "preStop"):
        found += inside(f"lifecycle.{hook}", _handler(around.grace))(given, None, path)
    for key in keys[1:]:
        found += inside(key, _handler(around.grace), *_PROBE)(given, None, path)
        probe = given.get(key) or {}
        threshold, grace = probe.get("successThreshold"), probe.get("terminationGracePeriodSeconds")
        if key != "readinessProbe" and threshold not in (None, 1):
            found.append(field_errors.invalid(f"{path}.{key}.successThreshold", threshold, "must be 1"))
        if key == "readinessProbe" and grace is not None:
            told = "must not be set for readinessProbes"
            found.append(field_errors.invalid(f"{path}.{key}.terminationGracePeriodSeconds", grace, told))
    return found


def _handler(grace: int | None) -> Rule:
    """Exactly one way to ask; a hook that waits must end before its container is killed."""

    def slept(given: Object, old: Object | None, path: str) -> list[FieldError]:
        seconds = given.get("seconds") or 0
        told = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        return [field_errors.invalid(path, seconds, told)] if grace is not None and not 0 <= seconds <= grace else []

    rules: dict[str, Rule] = {
        "exec": needed("command"),
        "httpGet": _http,
        "tcpSocket": lambda given, old, path: port(f"{path}.port", given.get("port")),
        "grpc": lambda given, old, path: port(f"{path}.port", given.get("port")),
        "sleep": slept,
    }

    def rule(given: Object, old: Object | None, path: str) -> list[FieldError]:
        ways = [key for key in _HANDLERS if given.get(key) is not None]
        if not ways:
            return [field_errors.required(path, "must specify a handler type")]
        found = [
            field_errors.forbidden(f"{path}.{key}", "may not specify more than 1 handler type") for key in ways[1:]
        ]
        return inside(ways[0], rules[ways[0]])(given, None, path) + found

    return rule


def _http(get: Object, old: Object | None, path: str) -> list[FieldError]:
    found = needed("path")(get, None, path) + port(f"{path}.port", get.get("port"))
    found += choice("scheme", ("HTTP", "HTTPS"))(get, None, path)
    headers = [one.get("name") or "" for one in get.get("httpHeaders") or ()]
    odd = [name for name in headers if not _HEADER.fullmatch(name)]
    return found + [field_errors.invalid(f"{path}.httpHeaders", name, _HEADER_TOLD) for name in odd]


_PROBE: Final = (
    at_least(0, "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
    at_least(1, "terminationGracePeriodSeconds", told="must be greater than 0"),
)


def _ports(ports: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    named: set[str] = set()
    for index, one in enumerate(ports):
        here, name = f"{path}[{index}]", one.get("name") or ""
        wrong = [field_errors.invalid(f"{here}.name", name, told) for told in port_name(name)] if name else []
        found += wrong
        if name in named and not wrong:
            found.append(field_errors.duplicate(f"{here}.name", name))
        named |= {name} if name else set()
        number, host = one.get("containerPort") or 0, one.get("hostPort") or 0
        told = "must be between 1 and 65535, inclusive"
        if not number:
            found.append(field_errors.required(f"{here}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(field_errors.invalid(f"{here}.containerPort", number, told))
        if host and not 1 <= host <= 65535:
            found.append(field_errors.invalid(f"{here}.hostPort", host, told))
        found += one_of(f"{here}.protocol", one.get("protocol"), PROTOCOLS)
    return found


def host_ports(containers: list[tuple[Object, str]]) -> list[FieldError]:
    """A port of the host is given away once."""
    found: list[FieldError] = []
    taken: set[str] = set()
    for one, path in containers:
        for index, given in enumerate(one.get("ports") or ()):
            if not given.get("hostPort"):
                continue
            shown = f"{given.get('protocol')}/{given.get('hostIP') or ''}/{given['hostPort']}"
            if shown in taken:
                found.append(field_errors.duplicate(f"{path}.ports[{index}].hostPort", shown))
            taken.add(shown)
    return found


def _variable(one: Object, path: str) -> list[FieldError]:
    name, source = one.get("name") or "", one.get("valueFrom")
    found = variable_name(f"{path}.name", name) if name else [field_errors.required(f"{path}.name")]
    if source is None:
        return found
    here, given = f"{path}.valueFrom", [key for key in _REFERENCES if source.get(key) is not None]
    if (field := source.get("fieldRef")) is not None:
        found += field_of_pod(field, f"{here}.fieldRef", OF_CONTAINERS)
    if (resource := source.get("resourceFieldRef")) is not None:
        found += resource_of_container(resource, f"{here}.resourceFieldRef", by_name=False)
    for key in ("configMapKeyRef", "secretKeyRef"):
        found += key_of(source[key], f"{here}.{key}") if source.get(key) is not None else []
    if (kept := source.get("fileKeyRef")) is not None:
        found += file_key(kept, f"{here}.fileKeyRef")
    if not given:
        *most, last = (f"`{key}`" for key in _REFERENCES)
        found.append(field_errors.invalid(here, "", f"must specify one of: {', '.join(most)} or {last}"))
    elif one.get("value"):
        found.append(field_errors.invalid(here, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(field_errors.invalid(here, "", "may not have more than one field specified at a time"))
    return found


def _variables(sources: list[Object], path: str) -> list[FieldError]:
    """All variables of a ConfigMap or Secret."""
    found: list[FieldError] = []
    for index, one in enumerate(sources):
        here, given = f"{path}[{index}]", [key for key in ("configMapRef", "secretRef") if one.get(key) is not None]
        found += variable_name(f"{here}.prefix", one["prefix"]) if one.get("prefix") else []
        for key in given:
            name, field = one[key].get("name") or "", f"{here}.{key}.name"
            wrong = [field_errors.invalid(field, name, told) for told in names.subdomain(name)]
            found += wrong if name else [field_errors.required(field)]
        if not given:
            found.append(field_errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            found.append(field_errors.invalid(path, "", "may not have more than one field specified at a time"))
    return found


def file_volumes(one: Object, path: str, volumes: dict[str, Object]) -> list[FieldError]:
    """Variables are read from files of volumes that are empty at first."""
    found: list[FieldError] = []
    for index, variable in enumerate(one.get("env") or ()):
        kept = (variable.get("valueFrom") or {}).get("fileKeyRef")
        if kept is None:
            continue
        field, name = f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName", kept.get("volumeName") or ""
        if name not in volumes:
            found.append(not_found(field, name))
        elif volumes[name].get("emptyDir") is None:
            found.append(field_errors.invalid(field, name, "referenced volume must be of type emptyDir"))
    return found


def _resized(policies: list[Object], path: str, restart: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, one in enumerate(policies):
        name, policy = one.get("resourceName") or "", one.get("restartPolicy") or ""
        if name in seen:
            found.append(field_errors.duplicate(f"{path}[{index}]", name))
        seen.add(name)
        for given, allowed in ((name, ("cpu", "memory")), (policy, ("NotRequired", "RestartContainer"))):
            found += ([] if given in allowed else [field_errors.not_supported(path, given, allowed)]) if given else []
            found += [] if given else [field_errors.required(path)]
        if restart == "Never" and policy != "NotRequired":
            told = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(field_errors.invalid(path, policy, told))
    return found


def _claimed(given: Object, path: str, claims: set[str]) -> list[FieldError]:
    """Claims of the Pod, each whole or by its requests, and each once."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, one in enumerate(given.get("claims") or ()):
        field, name, request = f"{path}[{index}]", one.get("name") or "", one.get("request") or ""
        if not name:
            found.append(field_errors.required(field))
            continue
        key = f"{name}/{request}" if request else name
        found += label(f"{field}.request", request) if request else []
        if name in seen or key in seen or (not request and any(other.startswith(f"{name}/") for other in seen)):
            found.append(field_errors.duplicate(field, name if name in seen else key))
        seen.add(key)
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            told = f"must be one of the names in pod.spec.resourceClaims{known}"
            found.append(FieldError("FieldValueNotFound", field, f"{not_found(field, name).message}: {told}"))
    return found


def resources(given: Object, path: str) -> list[FieldError]:
    """Requests and limits: known or qualified names, no less than nothing, and no request beyond its limit."""
    found: list[FieldError] = []
    limits, requests = given.get("limits") or {}, given.get("requests") or {}
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            found += _amount(name, amount, f"{path}.{key}[{name}]")
            asked = quantity.parse(amount)[0]
            most = quantity.parse(limits[name])[0] if key == "requests" and name in limits else asked
            if asked != most and not _overcommitted(name):
                told = f"must be equal to {name} limit of {limits[name]}"
                found.append(field_errors.invalid(f"{path}.requests", amount, told))
            elif asked > most:
                told = f"must be less than or equal to {name} limit of {limits[name]}"
                found.append(field_errors.invalid(f"{path}.requests", amount, told))
            if key == "requests" and name not in limits and not _overcommitted(name):
                told = "Limit must be set for non overcommitable resources"
                found.append(field_errors.required(f"{path}.limits", told))
    everything = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in everything) and not everything & {"cpu", "memory"}:
        found.append(field_errors.forbidden(path, "HugePages require cpu or memory"))
    return found


def resource_name(field: str, name: str) -> list[FieldError]:
    """The name of what a container may ask for: a standard one, or one of somebody's."""
    found = qualified(field, name)
    standard = name in _STANDARD or name.startswith("hugepages-")
    if "/" not in name:
        if not found and not standard:
            found = [field_errors.invalid(field, name, "must be a standard resource type or fully qualified")]
        told = "must be a standard resource for containers"
        return found if standard else [*found, field_errors.invalid(field, name, told)]
    own = "kubernetes.io/" in name
    extended = not name.startswith("requests.") and not names.qualified(f"requests.{name}")
    told = "doesn't follow extended resource name standard"
    return found if own or extended else [*found, field_errors.invalid(field, name, told)]


def _amount(name: str, amount: str, field: str) -> list[FieldError]:
    found = resource_name(field, name)
    if found and "/" not in name:
        return found
    number = quantity.parse(amount)[0]
    if number < 0:
        found.append(field_errors.invalid(field, amount, "must be greater than or equal to 0"))
    if "/" in name and not _overcommitted(name) and number != number.to_integral_value():
        found.append(field_errors.invalid(field, amount, "must be an integer"))
    return found


def _overcommitted(name: str) -> bool:
    """Whether more may be promised than there is: of the common resources and those of Kubernetes itself."""
    return ("/" not in name and not name.startswith("hugepages-")) or "kubernetes.io/" in name
