"""What is wrong with a container of a pod."""

from typing import Final

from fairlead.server import causes
from fairlead.server.causes import Cause
from fairlead.server.registry.checks.rules import Rule, at_least, choice, inside, needed, value
from fairlead.server.registry.checks.vocabulary import PROTOCOLS, Object, label, one_of, port, port_name, qualified
from fairlead.server.schema import quantity

_PULLS: Final = ("Always", "IfNotPresent", "Never")
_REFERENCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS: Final = frozenset(
    {
        "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
        "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
    }
)  # fmt: skip
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def container(given: Object, path: str, volumes: set[str], *, repeated: bool, starting: bool) -> list[Cause]:
    """`volumes` are those that may be mounted; `starting`: it runs before the others, and probes only if it stays."""
    name = given.get("name") or ""
    found = label(f"{path}.name", name) if name else [causes.required(f"{path}.name")]
    if repeated and name:
        found.append(causes.duplicate(f"{path}.name", name))
    image = given.get("image") or ""
    if not image:
        found.append(causes.required(f"{path}.image"))
    elif image != image.strip():
        found.append(causes.invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    policies = ("File", "FallbackToLogsOnError")
    found += one_of(f"{path}.terminationMessagePolicy", given.get("terminationMessagePolicy"), policies)
    found += _ports(given.get("ports") or [], f"{path}.ports")
    for index, one in enumerate(given.get("env") or ()):
        found += _variable(one, f"{path}.env[{index}]")
    for index, mount in enumerate(given.get("volumeMounts") or ()):
        found += _mount(mount, f"{path}.volumeMounts[{index}]", volumes)
    found += one_of(f"{path}.imagePullPolicy", given.get("imagePullPolicy"), _PULLS)
    found += resources(given.get("resources") or {}, f"{path}.resources")
    found += inside("securityContext", *_SECURITY)(given, None, path)
    return found + _living(given, path, passing=starting and given.get("restartPolicy") != "Always")


def _living(given: Object, path: str, *, passing: bool) -> list[Cause]:
    """Hooks and probes, which a container that passes has not."""
    keys = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    if passing:
        told = "may not be set for init containers without restartPolicy=Always"
        return [causes.forbidden(f"{path}.{key}", told) for key in keys if given.get(key) is not None]
    found: list[Cause] = []
    for hook in ("postStart", "preStop"):
        found += inside(f"lifecycle.{hook}", _handler)(given, None, path)
    for key in keys[1:]:
        found += inside(key, *_PROBE)(given, None, path)
        threshold = (given.get(key) or {}).get("successThreshold")
        if key != "readinessProbe" and threshold not in (None, 1):
            found.append(causes.invalid(f"{path}.{key}.successThreshold", threshold, "must be 1"))
    return found


def _handler(given: Object, old: Object | None, path: str) -> list[Cause]:
    """Exactly one way to ask."""
    ways = [key for key in _HANDLERS if given.get(key) is not None]
    if not ways:
        return [causes.required(path, "must specify a handler type")]
    found = [causes.forbidden(f"{path}.{key}", "may not specify more than 1 handler type") for key in ways[1:]]
    rules: dict[str, Rule] = {"exec": needed("command"), "httpGet": _http, "tcpSocket": value("port", port)}
    return inside(ways[0], *([rules[ways[0]]] if ways[0] in rules else []))(given, None, path) + found


def _http(get: Object, old: Object | None, path: str) -> list[Cause]:
    found = needed("path")(get, None, path) + port(f"{path}.port", get.get("port"))
    return found + choice("scheme", ("HTTP", "HTTPS"))(get, None, path)


_PROBE: Final = (
    _handler,
    at_least(0, "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
    at_least(1, "terminationGracePeriodSeconds", told="must be greater than 0"),
)


def identity(field: str, number: int) -> list[Cause]:
    """A user's or group's number."""
    told = "must be between 0 and 2147483647, inclusive"
    return [] if 0 <= number <= 2**31 - 1 else [causes.invalid(field, number, told)]


_SECURITY: Final = (value("runAsUser", identity), value("runAsGroup", identity))


def _ports(ports: list[Object], path: str) -> list[Cause]:
    found: list[Cause] = []
    named: set[str] = set()
    for index, one in enumerate(ports):
        here, name = f"{path}[{index}]", one.get("name") or ""
        wrong = [causes.invalid(f"{here}.name", name, told) for told in port_name(name)] if name else []
        found += wrong
        if name in named and not wrong:
            found.append(causes.duplicate(f"{here}.name", name))
        named |= {name} if name else set()
        number, host = one.get("containerPort") or 0, one.get("hostPort") or 0
        told = "must be between 1 and 65535, inclusive"
        if not number:
            found.append(causes.required(f"{here}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(causes.invalid(f"{here}.containerPort", number, told))
        if host and not 1 <= host <= 65535:
            found.append(causes.invalid(f"{here}.hostPort", host, told))
        found += one_of(f"{here}.protocol", one.get("protocol"), PROTOCOLS)
    return found


def _variable(one: Object, path: str) -> list[Cause]:
    name, source = one.get("name") or "", one.get("valueFrom")
    found = [] if name else [causes.required(f"{path}.name")]
    if "=" in name or not all(" " <= letter <= "~" for letter in name):
        told = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        found.append(causes.invalid(f"{path}.name", name, told))
    if source is None:
        return found
    here, given = f"{path}.valueFrom", [key for key in _REFERENCES if source.get(key) is not None]
    field = (source.get("fieldRef") or {}).get("fieldPath")
    if (
        field is not None
        and field not in _FIELDS
        and not field.startswith(("metadata.labels[", "metadata.annotations["))
    ):
        told = f"error converting fieldPath: field label not supported: {field}"
        found.append(causes.invalid(f"{here}.fieldRef.fieldPath", field, told))
    for key in ("configMapKeyRef", "secretKeyRef"):
        found += inside(key, needed("key"))(source, None, here)
    if not given:
        *most, last = (f"`{key}`" for key in _REFERENCES)
        found.append(causes.invalid(here, "", f"must specify one of: {', '.join(most)} or {last}"))
    elif one.get("value"):
        found.append(causes.invalid(here, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(causes.invalid(here, "", "may not have more than one field specified at a time"))
    return found


def _mount(mount: Object, path: str, volumes: set[str]) -> list[Cause]:
    found: list[Cause] = []
    if not mount.get("name"):
        found.append(causes.required(f"{path}.name"))
    elif mount["name"] not in volumes:
        found.append(Cause("FieldValueNotFound", f"{path}.name", f"Not found: {causes.quoted(mount['name'])}"))
    return found if mount.get("mountPath") else [*found, causes.required(f"{path}.mountPath")]


def resources(given: Object, path: str) -> list[Cause]:
    """Requests and limits: known or qualified names, no less than nothing, and no request beyond its limit."""
    found: list[Cause] = []
    limits, requests = given.get("limits") or {}, given.get("requests") or {}
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            found += _amount(name, amount, f"{path}.{key}[{name}]")
            asked = quantity.parse(amount)[0]
            if key == "requests" and name in limits and asked > quantity.parse(limits[name])[0]:
                told = f"must be less than or equal to {name} limit of {limits[name]}"
                found.append(causes.invalid(f"{path}.requests", amount, told))
            if key == "requests" and name not in limits and not _overcommitted(name):
                told = "Limit must be set for non overcommitable resources"
                found.append(causes.required(f"{path}.limits", told))
    everything = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in everything) and not everything & {"cpu", "memory"}:
        found.append(causes.forbidden(path, "HugePages require cpu or memory"))
    return found


def _amount(name: str, amount: str, field: str) -> list[Cause]:
    found = qualified(field, name)
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        for told in (
            "must be a standard resource type or fully qualified",
            "must be a standard resource for containers",
        ):
            found.append(causes.invalid(field, name, told))
        return found
    number = quantity.parse(amount)[0]
    if number < 0:
        found.append(causes.invalid(field, amount, "must be greater than or equal to 0"))
    if "/" in name and not _overcommitted(name) and number != number.to_integral_value():
        found.append(causes.invalid(field, amount, "must be an integer"))
    return found


def _overcommitted(name: str) -> bool:
    """Whether more may be promised than there is: of the common resources and those of Kubernetes itself."""
    return ("/" not in name and not name.startswith("hugepages-")) or "kubernetes.io/" in name
