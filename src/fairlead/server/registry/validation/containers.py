"""Validation of the containers of a Pod. The parent of a container's scope is the scope of its Pod spec."""

import re
from typing import Final

from fairlead.server.registry.validation import security
from fairlead.server.registry.validation.formats import (
    NOT_NEGATIVE,
    PROTOCOLS,
    dns_label,
    dns_subdomain,
    port,
    port_name,
    port_number,
    qualified_name,
    variable_name,
)
from fairlead.server.registry.validation.references import (
    CONFIG_KEY,
    FILE_KEY,
    IN_CONTAINERS,
    check_container_resource,
    check_pod_field,
)
from fairlead.server.registry.validation.rules import (
    NOT_EMPTY,
    SET,
    UNSET,
    Errors,
    Not,
    Object,
    Rule,
    Scope,
    apply,
    each,
    field,
    first_error,
    inside,
)
from fairlead.server.registry.validation.volume_mounts import check_volume_devices, check_volume_mounts
from fairlead.server.registry.validation.volumes import PULL_POLICIES
from fairlead.server.schema import names, quantity

_VALUE_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_STANDARD_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_LIFECYCLE: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_HEADER_MESSAGE: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')"
)


def check_container(container: Scope, *, volumes: dict[str, Object], is_repeated: bool, is_init: bool) -> Errors:
    """Check one container.

    `volumes` are the valid volumes of the Pod. `is_repeated`: an earlier container has the same name.
    """
    yield from apply(_BEFORE_VOLUMES, container)
    yield from check_volume_mounts(container, volumes)
    yield from check_volume_devices(container, volumes)
    yield from apply(_AFTER_VOLUMES, container)
    if is_init:
        yield from apply(_RESTART, container)
    if is_repeated and container.get("name"):
        yield container.duplicate("name")
    if is_init and container.get("restartPolicy") != "Always":
        for key in _LIFECYCLE:
            if container.get(key) is not None:
                yield container.forbidden(key, "may not be set for init containers without restartPolicy=Always")
    else:
        yield from apply(_HOOKS_AND_PROBES, container)
    if not is_init:
        yield from apply(_RESTART, container)


def check_image_without_spaces(container: Scope) -> Errors:
    """Reject an image name with leading or trailing spaces. Pod templates may have them."""
    image = container.text("image")
    if image != image.strip():
        yield container.invalid("image", "must not have leading or trailing whitespace")


_RESTART: Final = (
    field("restartPolicy").enum("Always", "Never", "OnFailure"),
    field("restartPolicy").required_if(
        {"restartPolicy": UNSET, "restartPolicyRules": NOT_EMPTY},
        "must specify restartPolicy when restart rules are used",
    ),
)


def _check_http_headers(get: Scope) -> Errors:
    for header in get.items("httpHeaders"):
        name = header.get("name") or ""
        if not _HEADER.fullmatch(name):
            yield get.invalid("httpHeaders", _HEADER_MESSAGE, name)


def _check_ends_before_kill(sleep: Scope) -> Errors:
    """Reject a preStop sleep that is longer than the termination grace period."""
    seconds, grace = sleep.number("seconds"), sleep.parent.parent.parent.get("terminationGracePeriodSeconds")
    if grace is not None and not 0 <= seconds <= grace:
        message = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield sleep.invalid("", message, seconds)


_PORT: Final = field("port").check(port, zero=0)
_HANDLERS: Final[dict[str, tuple[Rule, ...]]] = {
    "exec": (field("command").required(),),
    "httpGet": (field("path").required(), _PORT, field("scheme").enum("HTTP", "HTTPS"), _check_http_headers),
    "tcpSocket": (_PORT,),
    "grpc": (_PORT,),
    "sleep": (_check_ends_before_kill,),
}


def _check_one_handler(handler: Scope) -> Errors:
    """Require exactly one handler in a lifecycle hook or a probe."""
    keys = [key for key in _HANDLERS if handler.get(key) is not None]
    if not keys:
        yield handler.required("", "must specify a handler type")
        return
    yield from apply(_HANDLERS[keys[0]], handler.inside(keys[0]))
    for key in keys[1:]:
        yield handler.forbidden(key, "may not specify more than 1 handler type")


_PROBE: Final = (
    _check_one_handler,
    field("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold").at_least(0),
    field("terminationGracePeriodSeconds").at_least(1, message="must be greater than 0"),
)
_ONE_SUCCESS: Final = field("successThreshold").invalid_if({"successThreshold": Not([None, 1])}, "must be 1")
_HOOKS_AND_PROBES: Final = (
    inside("lifecycle.postStart", _check_one_handler),
    inside("lifecycle.preStop", _check_one_handler),
    inside("livenessProbe", *_PROBE, _ONE_SUCCESS),
    inside(
        "readinessProbe",
        *_PROBE,
        field("terminationGracePeriodSeconds").invalid_if(
            {"terminationGracePeriodSeconds": SET}, "must not be set for readinessProbes"
        ),
    ),
    inside("startupProbe", *_PROBE, _ONE_SUCCESS),
)


def check_host_ports_once(*containers: Scope) -> Errors:
    """Reject a hostPort that several container ports use."""
    used_ports: set[str] = set()
    for container in containers:
        for item in container.each("ports"):
            if item.get("hostPort"):
                port_text = f"{item.get('protocol')}/{item.text('hostIP')}/{item.get('hostPort')}"
                if port_text in used_ports:
                    yield item.duplicate("hostPort", port_text)
                used_ports.add(port_text)


def _check_one_value_source(source: Scope) -> Errors:
    """Require exactly one field in the valueFrom of an environment variable, and no `value` beside it."""
    keys = [key for key in _VALUE_SOURCES if source.get(key) is not None]
    if not keys:
        *first_sources, last = (f"`{key}`" for key in _VALUE_SOURCES)
        yield source.invalid("", f"must specify one of: {', '.join(first_sources)} or {last}", "")
    elif source.parent.get("value"):
        yield source.invalid("", "may not be specified when `value` is not empty", "")
    elif len(keys) > 1:
        yield source.invalid("", "may not have more than one field specified at a time", "")


def _check_one_env_source(source: Scope) -> Errors:
    """Require exactly one ConfigMap or Secret in an envFrom item. As on a real server, errors have no item index."""
    keys = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
    if not keys:
        yield source.parent.invalid("envFrom", "must specify one of: `configMapRef` or `secretRef`", "")
    elif len(keys) > 1:
        yield source.parent.invalid("envFrom", "may not have more than one field specified at a time", "")


def check_file_key_volumes(container: Scope, volumes: dict[str, Object]) -> Errors:
    """Require that each fileKeyRef of an environment variable names an emptyDir volume."""
    if not any("valueFrom" in variable for variable in container.items("env")):
        return  # Most containers have no such variable, and some have thousands of others.
    for variable in container.each("env"):
        ref = variable.get("valueFrom.fileKeyRef")
        if ref is None:
            continue
        key, name = "valueFrom.fileKeyRef.volumeName", ref.get("volumeName") or ""
        if name not in volumes:
            yield variable.not_found(key)
        elif volumes[name].get("emptyDir") is None:
            yield variable.invalid(key, "referenced volume must be of type emptyDir", name)


def _check_resize_policies(container: Scope) -> Errors:
    """Check resize policies. As on a real server, only errors about duplicates have an item index."""
    for policy in container.each("resizePolicy"):
        yield from _UNIQUE_RESOURCE(policy)
        for key, allowed in _RESIZE_VALUES:
            if not policy.get(key):
                yield container.required("resizePolicy")
            elif policy.get(key) not in allowed:
                yield container.not_supported("resizePolicy", allowed, policy.get(key))
        if container.parent.get("restartPolicy") == "Never" and policy.get("restartPolicy") != "NotRequired":
            message = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield container.invalid("resizePolicy", message, policy.text("restartPolicy"))


_UNIQUE_RESOURCE: Final = field("resourceName").unique(on_item=True)
_RESIZE_VALUES: Final = (("resourceName", ("cpu", "memory")), ("restartPolicy", ("NotRequired", "RestartContainer")))


def _check_claims(resources: Scope) -> Errors:
    """Check the resource claims of a container: each names a claim of the Pod, or one request of a claim, only once."""
    seen_claims: set[str] = set()
    pod_claims = {claim.get("name") or "" for claim in resources.parent.parent.items("resourceClaims")}
    for claim in resources.each("claims"):
        name, request = claim.text("name"), claim.text("request")
        if not name:
            yield claim.required()
            continue
        key = f"{name}/{request}" if request else name
        yield from claim.check("request", dns_label) if request else ()
        if (
            name in seen_claims
            or key in seen_claims
            or (not request and any(other.startswith(f"{name}/") for other in seen_claims))
        ):
            yield claim.duplicate("", name if name in seen_claims else key)
        seen_claims.add(key)
        if name not in pod_claims:
            known_claims = f": {', '.join(sorted(pod_claims))}" if pod_claims else " which is empty"
            yield claim.not_found("", f"must be one of the names in pod.spec.resourceClaims{known_claims}", name)


def check_resource_requirements(resources: Scope) -> Errors:
    """Check requests and limits: known or qualified names, no negative amounts, and no request above its limit."""
    limits, requests = resources.map("limits"), resources.map("requests")
    for name, amount in limits.items():
        yield from _check_amount(resources, f"limits[{name}]", name, amount)
    for name, amount in requests.items():
        yield from _check_amount(resources, f"requests[{name}]", name, amount)
        if name not in limits:
            if not _can_overcommit(name):
                yield resources.required("limits", "Limit must be set for non overcommitable resources")
            continue
        request, limit = quantity.parse(amount)[0], quantity.parse(limits[name])[0]
        if request != limit and not _can_overcommit(name):
            yield resources.invalid("requests", f"must be equal to {name} limit of {limits[name]}", amount)
        elif request > limit:
            yield resources.invalid("requests", f"must be less than or equal to {name} limit of {limits[name]}", amount)
    resource_names = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in resource_names) and not resource_names & {"cpu", "memory"}:
        yield resources.forbidden("", "HugePages require cpu or memory")


def check_resource_name(name: str) -> list[str]:
    """Return messages if a container cannot request a resource of this name: it must be standard or extended."""
    messages = list(qualified_name(name))
    if "/" not in name:
        if name in _STANDARD_RESOURCES or name.startswith("hugepages-"):
            return messages
        return [
            *(messages or ["must be a standard resource type or fully qualified"]),
            "must be a standard resource for containers",
        ]
    is_extended = not name.startswith("requests.") and not names.qualified(f"requests.{name}")
    if "kubernetes.io/" in name or is_extended:
        return messages
    return [*messages, "doesn't follow extended resource name standard"]


def _check_amount(resources: Scope, key: str, name: str, amount: str) -> Errors:
    errors = resources.check(key, check_resource_name, name)
    yield from errors
    if errors and "/" not in name:
        return
    number = quantity.parse(amount)[0]
    if number < 0:
        yield resources.invalid(key, NOT_NEGATIVE, amount)
    if "/" in name and not _can_overcommit(name) and number != number.to_integral_value():
        yield resources.invalid(key, "must be an integer", amount)


def _can_overcommit(name: str) -> bool:
    """Return whether a resource can be overcommitted: the standard resources and those in kubernetes.io."""
    return ("/" not in name and not name.startswith("hugepages-")) or "kubernetes.io/" in name


_BEFORE_VOLUMES: Final = (
    field("name").required(dns_label),
    field("image").required(),
    field("terminationMessagePolicy").enum("File", "FallbackToLogsOnError", always=True),
    each(
        "ports",
        first_error(field("name").optional(port_name), field("name").unique(skip_empty=True)),
        field("containerPort").required(port_number),
        field("hostPort").optional(port_number),
        field("protocol").enum(*PROTOCOLS, always=True),
    ),
    each(
        "env",
        field("name").required(variable_name),
        inside(
            "valueFrom",
            inside("fieldRef", check_pod_field(IN_CONTAINERS)),
            inside("resourceFieldRef", check_container_resource(is_by_name=False)),
            inside("configMapKeyRef", *CONFIG_KEY),
            inside("secretKeyRef", *CONFIG_KEY),
            inside("fileKeyRef", *FILE_KEY),
            _check_one_value_source,
        ),
    ),
    each(
        "envFrom",
        field("prefix").optional(variable_name),
        inside("configMapRef", field("name").required(dns_subdomain)),
        inside("secretRef", field("name").required(dns_subdomain)),
        _check_one_env_source,
    ),
)
_AFTER_VOLUMES: Final = (
    field("imagePullPolicy").enum(*PULL_POLICIES, always=True),
    inside("resources", check_resource_requirements, _check_claims),
    _check_resize_policies,
    security.CONTAINER,
)
