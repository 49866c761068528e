"""Validation of Pods and of the Pod templates of workloads."""

from typing import Any, Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation import security
from fairlead.server.registry.validation.containers import (
    check_container,
    check_file_key_volumes,
    check_host_ports_once,
    check_image_without_spaces,
    check_resource_requirements,
)
from fairlead.server.registry.validation.formats import dns_label, dns_subdomain, ip_address, qualified_name
from fairlead.server.registry.validation.rules import (
    NOT_EMPTY,
    SET,
    Errors,
    Object,
    Rule,
    Scope,
    apply,
    build_validator,
    each,
    field,
    first_error,
    inside,
    when,
)
from fairlead.server.registry.validation.scheduling import affinity, check_toleration, topology_spread_constraints
from fairlead.server.registry.validation.selectors import check_labels
from fairlead.server.registry.validation.volumes import check_volumes
from fairlead.server.schema import names
from fairlead.server.schema.metadata_validation import validate_labels_and_annotations

_IMMUTABLE_SPEC: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_NOT_WHEN: Final = "may not be specified when {} is true"
_MAX_NAMESERVERS: Final = 3
_MAX_SEARCHES: Final = 32
_MAX_SEARCH_LENGTH: Final = 2048


def validate_pod(new: Object, old: Object | None) -> list[FieldError]:
    spec = Scope(new, old).inside("spec")
    if spec.value == spec.old:
        return []
    errors = check_pod_spec(spec)
    if old is None:
        return [*errors, *_NOT_ON_CREATE(spec)]
    image_errors = [error for error in errors if error.field.endswith(".image")]
    return errors + (
        image_errors or list(_check_update(spec))
    )  # a real server reports wrong images twice, and then stops


_NOT_ON_CREATE: Final = field("ephemeralContainers").forbidden_if(
    {"ephemeralContainers": NOT_EMPTY}, "cannot be set on create"
)


def _check_update(spec: Scope) -> Errors:
    """Reject an update of a Pod spec that changes more than images, deadlines, tolerations and scheduling gates."""
    old = Scope(spec.old or {})
    for key in ("containers", "initContainers"):
        if len(old.items(key)) != len(spec.items(key)):
            yield spec.forbidden(key, "pod updates may not add or remove containers")
            return
    deadline, old_deadline = spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if old_deadline is not None and deadline is None:
        yield spec.invalid("activeDeadlineSeconds", "must not update from a positive integer to nil value")
    elif old_deadline is not None and deadline > old_deadline:
        yield spec.invalid("activeDeadlineSeconds", "must be less than or equal to previous value")
        return
    new_tolerations, old_tolerations = ([_drop_seconds(item) for item in x.items("tolerations")] for x in (spec, old))
    if any(item not in new_tolerations for item in old_tolerations):
        message = "existing toleration can not be modified except its tolerationSeconds"
        yield spec.forbidden("tolerations", message)
    old_gates = [gate.get("name") for gate in old.items("schedulingGates")]
    for gate in spec.each("schedulingGates"):
        if gate.get("name") not in old_gates:
            message = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield gate.forbidden("name", message)
    if old_gates and not old.map("nodeSelector").items() <= spec.map("nodeSelector").items():
        message = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield spec.invalid("nodeSelector", message, spec.map("nodeSelector"))
    if _drop_mutable_fields(spec.value, old) != _drop_mutable_fields(old.value, old):
        yield spec.forbidden("", _IMMUTABLE_SPEC)


def _drop_seconds(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _drop_mutable_fields(spec: Object, old: Scope) -> Object:
    """Return a Pod spec without the fields that an update may change."""
    mutable = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if old.get("schedulingGates"):
        mutable.add("nodeSelector")
    immutable_spec: dict[str, Any] = {key: value for key, value in spec.items() if key not in mutable}
    for key in ("containers", "initContainers"):
        immutable_spec[key] = [{k: v for k, v in item.items() if k != "image"} for item in spec.get(key) or ()]
    if old.number("terminationGracePeriodSeconds") < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        immutable_spec["terminationGracePeriodSeconds"] = old.get("terminationGracePeriodSeconds")
    return immutable_spec


def check_pod_template(template: Scope) -> Errors:
    """Check the labels, annotations and spec of a Pod template."""
    spec = template.inside("spec")
    yield from validate_labels_and_annotations(template.map("metadata"), template.path())
    yield from check_pod_spec(spec, is_template=True)
    if spec.get("ephemeralContainers"):
        yield spec.forbidden("ephemeralContainers", "ephemeral containers not allowed in pod template")


pod_template_kind: Final = build_validator(inside("template", check_pod_template, always=True))


def check_pod_spec(spec: Scope, *, is_template: bool = False) -> list[FieldError]:
    """Return the errors of a Pod spec. The spec of a template may omit some fields."""
    errors, volumes = check_volumes(spec, is_template=is_template)
    errors += apply(_RESOURCE_CLAIMS, spec)
    containers, init_containers = list(spec.each("containers")), list(spec.each("initContainers"))
    if not containers:
        errors.append(spec.required("containers"))
    seen_names: set[str] = set()
    for item in containers:
        errors += check_container(item, volumes=volumes, is_repeated=item.text("name") in seen_names, is_init=False)
        seen_names.add(item.text("name"))
    errors += check_host_ports_once(*containers)
    for item in init_containers:
        errors += check_container(item, volumes=volumes, is_repeated=item.text("name") in seen_names, is_init=True)
        errors += check_host_ports_once(
            Scope(item.value, None, spec, "initContainers[0]")
        )  # as a real server reports it
        seen_names.add(item.text("name"))
    errors += _check_host_network_ports(spec, is_template=is_template)
    errors += apply(_SPEC, spec)
    all_volumes = {volume.get("name") or "": volume for volume in spec.items("volumes")}
    for item in (*init_containers, *containers):
        errors += check_file_key_volumes(item, all_volumes)
    if not is_template:
        errors += _check_tokens_need_account(spec)
        for item in (*containers, *init_containers):
            errors += check_image_without_spaces(item)
    return errors


def _check_tokens_need_account(spec: Scope) -> Errors:
    """Reject projected ServiceAccount tokens in a Pod without a ServiceAccount.

    The Pods of a template can get a ServiceAccount later.
    """
    if spec.get("serviceAccountName"):
        return
    for volume in spec.each("volumes"):
        for source in volume.inside("projected").each("sources"):
            if source.get("serviceAccountToken") is not None:
                message = "must not be specified when serviceAccountName is not set"
                yield source.forbidden("serviceAccountToken", message)


def _check_one_claim_source(claim: Scope) -> Errors:
    """Require a resource claim of a Pod to name either a ResourceClaim or a ResourceClaimTemplate."""
    keys = [key for key in _CLAIM_SOURCES if claim.get(key) is not None]
    if len(keys) == 2:
        yield claim.invalid("", "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
    if not keys:
        yield claim.invalid("", "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
    for key in keys:
        yield from claim.check(key, dns_subdomain)


_CLAIM_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")
_RESOURCE_CLAIMS: Final = (
    each(
        "resourceClaims",
        first_error(field("name").required(), field("name").unique(), field("name").check(dns_label)),
        _check_one_claim_source,
    ),
)


def _check_host_network_ports(spec: Scope, *, is_template: bool) -> Errors:
    """Require hostPort to equal containerPort if the Pod uses the host network."""
    if not spec.get("hostNetwork"):
        return
    for item in spec.each("containers"):
        for port in item.each("ports"):
            host = port.number("hostPort")
            if host != port.number("containerPort") and (host or not is_template):
                yield port.invalid("hostPort", "must match `containerPort` when `hostNetwork` is true", host)


def _check_searches(config: Scope) -> Errors:
    searches = config.items("searches")
    if len(searches) > _MAX_SEARCHES:
        yield config.invalid("searches", f"must not have more than {_MAX_SEARCHES} search paths")
    if len(" ".join(searches)) > _MAX_SEARCH_LENGTH:
        message = f"must not have more than {_MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        yield config.invalid("searches", message)
    for index, search_domain in enumerate(searches):
        if search_domain != ".":
            name = search_domain.removesuffix(".")
            yield from config.check(f"searches[{index}]", names.subdomain_or_underscore, name)


_DNS_CONFIG: Final[Rule] = first_error(
    when(
        {"dnsPolicy": "None"},
        first_error(
            lambda spec: (
                [spec.required("dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")]
                if spec.get("dnsConfig") is None
                else []
            ),
            field("dnsConfig.nameservers").required(
                detail="must provide at least one DNS nameserver when `dnsPolicy` is None"
            ),
        ),
    ),
    inside(
        "dnsConfig",
        field("nameservers").invalid_if(
            lambda config: len(config.items("nameservers")) > _MAX_NAMESERVERS,
            f"must not have more than {_MAX_NAMESERVERS} nameservers",
        ),
        field("nameservers").values(ip_address),
        _check_searches,
        each("options", lambda option: [] if option.get("name") else [option.required("", "must not be empty")]),
    ),
)


def _check_os(spec: Scope) -> Errors:
    if spec.get("os") is None:
        return
    if not spec.get("os.name"):
        yield spec.required("os.name")
    elif spec.get("os.name") not in ("linux", "windows"):
        yield spec.not_supported("os", ("linux", "windows"), spec.get("os.name"))


_HOSTNAME_OVERRIDE: Final = when(
    {"hostnameOverride": SET},
    field("hostnameOverride").forbidden_if({"setHostnameAsFQDN": True}, _NOT_WHEN.format("setHostnameAsFQDN")),
    field("hostnameOverride").forbidden_if({"hostNetwork": True}, _NOT_WHEN.format("hostNetwork")),
    field("hostnameOverride").max_length(64).check(dns_subdomain),
)
_HOST_USERS: Final = when(
    {"hostUsers": False},
    field("hostNetwork").forbidden_if({"hostNetwork": True}, "when `hostUsers` is false"),
    field("HostPID").forbidden_if({"hostPID": True}, "when `hostUsers` is false"),
    field("HostIPC").forbidden_if({"hostIPC": True}, "when `hostUsers` is false"),
)
_SPEC: Final[tuple[Rule, ...]] = (
    field("restartPolicy").enum("Always", "OnFailure", "Never", always=True),
    field("dnsPolicy").enum("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None", always=True),
    check_labels("nodeSelector"),
    *security.POD,
    affinity,
    _DNS_CONFIG,
    each("readinessGates", field("conditionType").check(qualified_name)),
    each(
        "schedulingGates",
        lambda gate: gate.check("", qualified_name, gate.text("name")),
        field("name").unique(on_item=True),
    ),
    topology_spread_constraints,
    _HOST_USERS,
    _HOSTNAME_OVERRIDE,
    field("serviceAccountName").optional(dns_subdomain),
    field("nodeName").optional(dns_subdomain),
    field("activeDeadlineSeconds").between(1, 2**31 - 1),
    field("hostname").optional(dns_label),
    field("subdomain").optional(dns_label),
    each("tolerations", check_toleration),
    each("hostAliases", field("ip").check(ip_address, zero=""), field("hostnames").values(dns_subdomain)),
    field("priorityClassName").optional(dns_subdomain),
    field("runtimeClassName").optional(dns_subdomain),
    field("preemptionPolicy").enum("PreemptLowerPriority", "Never"),
    lambda spec: check_resource_requirements(Scope({"limits": spec.map("overhead")}, None, spec, "overhead")),
    _check_os,
)
