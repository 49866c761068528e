"""Validation of workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers and others."""

from collections.abc import Callable
from typing import Final

from fairlead.api.gojson import quote_go
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation import pod_warnings
from fairlead.server.registry.validation.formats import count_or_percent, dns_label
from fairlead.server.registry.validation.pods import check_pod_template
from fairlead.server.registry.validation.rules import (
    SET,
    Errors,
    Not,
    Object,
    Rule,
    Scope,
    apply,
    build_validator,
    each,
    field,
    go_struct,
    inside,
    on_create,
    on_update,
)
from fairlead.server.registry.validation.selectors import check_label_selector, is_empty_selector, selects
from fairlead.server.registry.validation.storage import claim_spec
from fairlead.server.schema.metadata_validation import validate_labels_and_annotations

_LABELS_MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_SET_IMMUTABLE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_SET_MUTABLE: Final = frozenset(
    {
        "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
    }
)  # fmt: skip
_ROLLING: Final = ("maxUnavailable", "maxSurge")
_SELECTOR: Final = check_label_selector("selector")


def _get_template(spec: Scope) -> Scope:
    return spec.inside("template")


def _build_stateful_set_template(spec: Scope) -> Scope:
    """Return the Pod template of a StatefulSet as its Pods will be.

    The template gets a volume for each claim template, and loses hostname and subdomain.
    """
    template = spec.map("template")
    pod = {key: part for key, part in (template.get("spec") or {}).items() if key not in ("hostname", "subdomain")}
    claims = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.items("volumeClaimTemplates")]
    if claims:
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)]
        other_volumes = [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
        pod["volumes"] = [*volumes, *other_volumes]
    return Scope({**template, "spec": pod}, None, spec, "template")


def _check_selector_and_template(
    kind: str, owner: str, detail: str = ": invalid label selector", get: Callable[[Scope], Scope] = _get_template
) -> Rule:
    """Return a rule that requires a selector which matches the Pod template, and checks the template.

    Messages name `kind` and `owner`.
    """
    template_rules = _check_template(owner)

    def rule(spec: Scope) -> Errors:
        selector, template = spec.get("selector"), get(spec)
        errors = list(_SELECTOR(spec))
        yield from errors
        if selector is None and kind != "daemonset":
            yield spec.required("selector")
        if selector is not None and is_empty_selector(selector):
            yield spec.invalid("selector", f"empty selector is invalid for {kind}")
        elif not errors and not selects(selector, template.get("metadata.labels") or {}):
            yield template.invalid("metadata.labels", _LABELS_MISMATCH)
        if errors and kind != "daemonset":
            message = f"Invalid value: {field_errors.format_value(selector)}{detail}"
            yield FieldError("FieldValueInvalid", spec.path("selector"), message)
            return
        yield from apply(template_rules, template)
        if kind == "statefulset":  # a real server checks these labels and annotations twice
            yield from validate_labels_and_annotations(template.map("metadata"), template.path())

    return rule


def _check_template(owner: str) -> tuple[Rule, ...]:
    """Return the rules for a Pod template whose restartPolicy must be Always."""
    return (
        check_pod_template,
        field("spec.restartPolicy").enum("Always", always=True),
        field("spec.activeDeadlineSeconds").forbidden_if(
            {"spec.activeDeadlineSeconds": SET}, f"activeDeadlineSeconds in {owner} is not Supported"
        ),
    )


def _is_percent(value: object) -> bool:
    return isinstance(value, str) and value[:-1].isdigit()


def _check_counts(rolling: Scope, keys: tuple[str, ...], *, allows_percents: bool) -> Errors:
    """Check numbers or percentages at `keys`. A real server reports percentages above 100% after other errors."""
    for key in keys:
        if _is_percent(rolling.get(key)) == allows_percents:
            yield from rolling.check(key, count_or_percent)


def _to_number(value: object) -> int:
    """Return a number, the number in a percentage such as "25%", or 0 for anything else."""
    if isinstance(value, str):
        return int(value[:-1]) if value[:-1].isdigit() and value.endswith("%") else 0
    return value if isinstance(value, int) else 0


def _build_unknown_strategy_error(strategy: Scope, allowed: tuple[str, ...]) -> FieldError:
    rolling = strategy.get("rollingUpdate")
    shape = {"MaxUnavailable": "maxUnavailable", "MaxSurge": "maxSurge"}
    inner = "null" if rolling is None else go_struct({name: rolling.get(key, 0) for name, key in shape.items()})
    strategy_text = f'{{"Type":{field_errors.format_value(strategy.get("type"))},"RollingUpdate":{inner}}}'
    supported = ", ".join(quote_go(name) for name in allowed)
    message = f"Unsupported value: {strategy_text}: supported values: {supported}"
    return FieldError("FieldValueNotSupported", strategy.path(), message)


def _check_deployment_strategy(strategy: Scope) -> Errors:
    rolling = strategy.inside("rollingUpdate")
    if strategy.get("type") == "Recreate":
        if strategy.get("rollingUpdate") is not None:
            yield rolling.forbidden("", "may not be specified when strategy `type` is 'Recreate'")
    elif strategy.get("type") != "RollingUpdate":
        yield _build_unknown_strategy_error(strategy, ("Recreate", "RollingUpdate"))
    else:
        yield from _check_counts(rolling, _ROLLING, allows_percents=False)
        if not any(_to_number(rolling.get(key)) for key in _ROLLING):
            yield rolling.invalid("maxUnavailable", "may not be 0 when `maxSurge` is 0")
        yield from _check_counts(rolling, ("maxUnavailable",), allows_percents=True)


def _check_daemon_set_strategy(strategy: Scope) -> Errors:
    if strategy.get("type") == "OnDelete":
        return
    if strategy.get("type") != "RollingUpdate":
        yield _build_unknown_strategy_error(strategy, ("RollingUpdate", "OnDelete"))
        return
    rolling = strategy.inside("rollingUpdate")
    yield from _check_counts(rolling, _ROLLING, allows_percents=False)
    yield from _check_counts(rolling, _ROLLING, allows_percents=True)
    unavailable, surge = (_to_number(rolling.get(key)) for key in _ROLLING)
    if unavailable and surge:
        yield rolling.invalid("maxSurge", "may not be set when maxUnavailable is non-zero")
    elif not unavailable and not surge:
        yield rolling.required("maxUnavailable", "cannot be 0 when maxSurge is 0")


def _check_stateful_set_strategy(strategy: Scope) -> Errors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    shape = None if rolling is None else {"Partition": rolling.get("partition"), "MaxUnavailable": None}
    if kind == "RollingUpdate":
        yield from _PARTITION(strategy)
    elif kind != "OnDelete":
        strategy_text = go_struct({"Type": kind, "RollingUpdate": shape})
        message = f"Invalid value: {strategy_text}: must be 'RollingUpdate' or 'OnDelete'"
        yield FieldError("FieldValueInvalid", strategy.path(), message)
    elif shape is not None:
        message = f"Invalid value: {go_struct(shape)}: only allowed for updateStrategy 'RollingUpdate'"
        yield FieldError("FieldValueInvalid", strategy.path("rollingUpdate"), message)


def _check_stateful_set_immutable(spec: Scope) -> Errors:
    new, old = (
        {key: value for key, value in (obj or {}).items() if key not in _STATEFUL_SET_MUTABLE}
        for obj in (spec.value, spec.old)
    )
    if new != old:
        yield spec.forbidden("", _STATEFUL_SET_IMMUTABLE)


def _check_labels_match(spec: Scope) -> Errors:
    """Require that the labels of the Pod template match the selector of a ReplicationController, a map of labels."""
    labels = spec.get("template.metadata.labels") or {}
    if spec.get("template") is not None and not spec.map("selector").items() <= labels.items():
        yield spec.invalid("template.metadata.labels", _LABELS_MISMATCH)


_PARTITION: Final = field("rollingUpdate.partition").at_least(0)
_RETENTION: Final = ("Retain", "Delete")
deployment: Final = build_validator(
    inside(
        "spec",
        field("replicas").at_least(0),
        _check_selector_and_template("deployment", "ReplicaSet"),
        inside("strategy", _check_deployment_strategy),
        field("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds").at_least(0),
        field("progressDeadlineSeconds").invalid_if(
            lambda spec: (
                spec.get("progressDeadlineSeconds") is not None
                and spec.number("progressDeadlineSeconds") <= spec.number("minReadySeconds")
            ),
            "must be greater than minReadySeconds",
        ),
        always=True,
    ),
    field("spec.selector").immutable(),
)
replica_set: Final = build_validator(
    inside(
        "spec",
        field("replicas", "minReadySeconds").at_least(0),
        _check_selector_and_template("deployment", "ReplicaSet"),
        always=True,
    ),
    field("spec.selector").immutable(),
)
daemon_set: Final = build_validator(
    field("spec.selector").immutable(),
    inside(
        "spec",
        _check_selector_and_template("daemonset", "DaemonSet"),
        field("minReadySeconds").at_least(0),
        inside("updateStrategy", _check_daemon_set_strategy),
        field("revisionHistoryLimit").at_least(0),
        always=True,
    ),
)
stateful_set: Final = build_validator(
    inside(
        "spec",
        field("podManagementPolicy").invalid_if(
            {"podManagementPolicy": Not(["OrderedReady", "Parallel"])}, "must be 'OrderedReady' or 'Parallel'"
        ),
        inside("updateStrategy", _check_stateful_set_strategy),
        field("persistentVolumeClaimRetentionPolicy.whenDeleted").enum(*_RETENTION),
        field("persistentVolumeClaimRetentionPolicy.whenScaled").enum(*_RETENTION),
        on_create(each("volumeClaimTemplates", claim_spec)),
        field("replicas", "minReadySeconds", "ordinals.start").at_least(0),
        on_create(field("serviceName").optional(dns_label)),
        _check_selector_and_template("statefulset", "StatefulSet", "", _build_stateful_set_template),
        on_update(_check_stateful_set_immutable),
        always=True,
    )
)
replication_controller: Final = build_validator(
    inside(
        "spec",
        field("minReadySeconds").at_least(0),
        field("selector").required(),
        field("replicas").at_least(0),
        field("template").required(allow_empty=True),
        _check_labels_match,
        inside("template", *_check_template("ReplicationController")),
        always=True,
    )
)
controller_revision: Final = build_validator(
    field("revision").at_least(0),
    on_create(field("data").required(detail="data is mandatory", allow_empty=True)),
    field("data").immutable(),
)


def _check_minimum_or_maximum(spec: Scope) -> Errors:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        autoscaler_value = {
            "MinAvailable": spec.get("minAvailable"),
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec.get("maxUnavailable"),
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        message = f"Invalid value: {go_struct(autoscaler_value)}: minAvailable and maxUnavailable cannot be both set"
        yield FieldError("FieldValueInvalid", spec.path(), message)


disruption_budget: Final = build_validator(
    inside(
        "spec",
        _check_minimum_or_maximum,
        field("minAvailable").check(count_or_percent),
        field("maxUnavailable").check(count_or_percent),
        _SELECTOR,
        field("unhealthyPodEvictionPolicy").enum("AlwaysAllow", "IfHealthyBudget"),
        always=True,
    )
)


def find_stateful_set_warnings(new: Object, old: Object | None) -> list[str]:
    warnings = pod_warnings.build_template_warner("spec", "template")(new, old)
    if (new["spec"].get("revisionHistoryLimit") or 0) < 0:
        message = "a negative value retains all historical revisions; a value >= 0 is recommended"
        warnings.append(f"spec.revisionHistoryLimit: {message}")
    return warnings


def find_replication_controller_warnings(new: Object, old: Object | None) -> list[str]:
    """Return the warnings about the Pod template. On update, a real server warns about the old template."""
    warnings = pod_warnings.build_template_warner("spec", "template")
    return warnings(new, None) if old is None else warnings(old, new)
