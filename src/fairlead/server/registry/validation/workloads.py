"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers and disruption budgets."""

from collections.abc import Callable
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation import podwarnings
from fairlead.server.registry.validation.pods import pod_template
from fairlead.server.registry.validation.rules import (
    Rule,
    at_least,
    checks,
    choice,
    each,
    fixed,
    inside,
    needed,
    on_create,
    on_update,
    words,
)
from fairlead.server.registry.validation.storage import claim_spec
from fairlead.server.registry.validation.vocabulary import (
    Object,
    go_shape,
    number_or_percent,
    one_of,
    selector,
    selects,
)
from fairlead.server.write import names
from fairlead.server.write.metadata import validate_labels_and_annotations

_ALWAYS: Final = ("Always",)
_STATEFUL: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_FREE: Final = frozenset(
    {
        "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
    }
)  # fmt: skip


def _as_told(spec: Object) -> Object:
    return spec.get("template") or {}


def _identified(spec: Object) -> Object:
    """A StatefulSet's template as its Pods will be: named by it, and with volumes of its claims."""
    template = _as_told(spec)
    pod = {key: part for key, part in (template.get("spec") or {}).items() if key not in ("hostname", "subdomain")}
    claimed = [(claim.get("metadata") or {}).get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    if claimed:
        own = [volume for volume in pod.get("volumes") or () if volume.get("name") not in claimed]
        claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claimed)]
        pod["volumes"] = [*claims, *own]
    return {**template, "spec": pod}


def _selecting(kind: str, unreadable: str, owner: str, templated: Callable[[Object], Object] = _as_told) -> Rule:
    """A selector that matches the template, and the template, which restarts its containers always."""

    twice = kind == "statefulset"

    def rule(spec: Object, old: Object | None, path: str) -> list[FieldError]:
        template, chosen = templated(spec), spec.get("selector")
        labels = (template.get("metadata") or {}).get("labels")
        wrong = selector(f"{path}.selector", chosen)
        found = list(wrong)
        if chosen is None and kind != "daemonset":
            found.append(field_errors.required(f"{path}.selector"))
        if chosen is not None and not chosen.get("matchLabels") and not chosen.get("matchExpressions"):
            found.append(field_errors.invalid(f"{path}.selector", chosen, f"empty selector is invalid for {kind}"))
        elif not wrong and not selects(chosen, labels or {}):
            told = "`selector` does not match template `labels`"
            found.append(field_errors.invalid(f"{path}.template.metadata.labels", labels, told))
        if wrong and kind != "daemonset":
            shown = f"Invalid value: {field_errors.format_value(chosen)}"
            found.append(
                FieldError("FieldValueInvalid", f"{path}.selector", f"{shown}: {unreadable}" if unreadable else shown)
            )
            return found
        found += _template(owner)(template, None, f"{path}.template")
        # a real server looks at what a StatefulSet calls its Pods twice
        return found + (
            validate_labels_and_annotations(template.get("metadata") or {}, f"{path}.template") if twice else []
        )

    return rule


def _template(owner: str) -> Rule:
    def rule(given: Object, old: Object | None, path: str) -> list[FieldError]:
        spec = given.get("spec") or {}
        found = pod_template(given, path) + one_of(f"{path}.spec.restartPolicy", spec.get("restartPolicy"), _ALWAYS)
        if spec.get("activeDeadlineSeconds") is not None:
            told = f"activeDeadlineSeconds in {owner} is not Supported"
            found.append(field_errors.forbidden(f"{path}.spec.activeDeadlineSeconds", told))
        return found

    return rule


def _bounds(rolling: Object, path: str, keys: tuple[str, ...]) -> list[FieldError]:
    """Counts or shares; a share above all is told apart."""
    found: list[FieldError] = []
    for key in keys:
        given = rolling.get(key)
        over = isinstance(given, str) and given[:-1].isdigit()
        found += [] if over else number_or_percent(f"{path}.{key}", given)
    return found


def _deployed(strategy: Object, old: Object | None, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        told = "may not be specified when strategy `type` is 'Recreate'"
        return [field_errors.forbidden(f"{path}.rollingUpdate", told)] if rolling is not None else []
    if kind != "RollingUpdate":
        return [_unknown(path, kind, rolling, ("Recreate", "RollingUpdate"))]
    rolling = rolling or {}
    found = _bounds(rolling, f"{path}.rollingUpdate", ("maxUnavailable", "maxSurge"))
    if _number(rolling.get("maxUnavailable")) == 0 and _number(rolling.get("maxSurge")) == 0:
        told = "may not be 0 when `maxSurge` is 0"
        found.append(field_errors.invalid(f"{path}.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], told))
    return found + _whole(rolling, f"{path}.rollingUpdate", ("maxUnavailable",))


def _unknown(path: str, kind: str | None, rolling: Object | None, allowed: tuple[str, ...]) -> FieldError:
    listed = ", ".join(field_errors.quote_go(one) for one in allowed)
    shape = {"MaxUnavailable": "maxUnavailable", "MaxSurge": "maxSurge"}
    inner = "null" if rolling is None else go_shape({name: rolling.get(key, 0) for name, key in shape.items()})
    shown = f'{{"Type":{field_errors.format_value(kind)},"RollingUpdate":{inner}}}'
    return FieldError("FieldValueNotSupported", path, f"Unsupported value: {shown}: supported values: {listed}")


def _whole(rolling: Object, path: str, keys: tuple[str, ...]) -> list[FieldError]:
    given = [(key, rolling.get(key)) for key in keys]
    shares = [(key, share) for key, share in given if isinstance(share, str) and share[:-1].isdigit()]
    return [cause for key, share in shares for cause in number_or_percent(f"{path}.{key}", share)]


def _number(value: object) -> int:
    """A count, or a share's number; what is neither counts as none."""
    if isinstance(value, str):
        return int(value[:-1]) if value[:-1].isdigit() and value.endswith("%") else 0
    return value if isinstance(value, int) else 0


def _daemon(strategy: Object, old: Object | None, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [_unknown(path, kind, rolling, ("RollingUpdate", "OnDelete"))]
    rolling, path, keys = rolling or {}, f"{path}.rollingUpdate", ("maxUnavailable", "maxSurge")
    found = _bounds(rolling, path, keys) + _whole(rolling, path, keys)
    gone, more = (_number(rolling.get(key)) for key in keys)
    if gone and more:
        told = "may not be set when maxUnavailable is non-zero"
        found.append(field_errors.invalid(f"{path}.maxSurge", rolling["maxSurge"], told))
    elif not gone and not more:
        found.append(field_errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return found


def _stateful(strategy: Object, old: Object | None, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    shape = None if rolling is None else {"Partition": rolling.get("partition"), "MaxUnavailable": None}
    if kind == "RollingUpdate":
        return at_least(0, "partition")(rolling or {}, None, f"{path}.rollingUpdate")
    if kind == "OnDelete":
        told = "only allowed for updateStrategy 'RollingUpdate'"
        field = f"{path}.rollingUpdate"
        shown = go_shape(shape) if shape else ""
        return [FieldError("FieldValueInvalid", field, f"Invalid value: {shown}: {told}")] if shape else []
    shown = go_shape({"Type": kind, "RollingUpdate": shape})
    return [FieldError("FieldValueInvalid", path, f"Invalid value: {shown}: must be 'RollingUpdate' or 'OnDelete'")]


def _pod_management(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    given = spec.get("podManagementPolicy")
    told = "must be 'OrderedReady' or 'Parallel'"
    known = given in ("OrderedReady", "Parallel")
    return [] if known else [field_errors.invalid(f"{path}.podManagementPolicy", given, told)]


def _stateful_kept(new: Object, old: Object | None, path: str) -> list[FieldError]:
    kept, was = ({k: v for k, v in (one or {}).items() if k not in _STATEFUL_FREE} for one in (new, old))
    return [field_errors.forbidden(path, _STATEFUL)] if kept != was else []


def _in_time(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is None or deadline > (spec.get("minReadySeconds") or 0):
        return []
    return [field_errors.invalid(f"{path}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")]


def _controlled(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """A ReplicationController's selector is a plain map of labels."""
    chosen, template = spec.get("selector") or {}, spec.get("template")
    if template is None:
        return [field_errors.required(f"{path}.template")]
    labels = (template.get("metadata") or {}).get("labels")
    found: list[FieldError] = []
    if any((labels or {}).get(key) != text for key, text in chosen.items()):
        told = "`selector` does not match template `labels`"
        found.append(field_errors.invalid(f"{path}.template.metadata.labels", labels, told))
    return found + _template("ReplicationController")(template, None, f"{path}.template")


_UNREADABLE: Final = "invalid label selector"
_RETAINED: Final = ("Retain", "Delete")
deployment: Final = checks(
    inside(
        "spec",
        at_least(0, "replicas"),
        _selecting("deployment", _UNREADABLE, "ReplicaSet"),
        inside("strategy", _deployed),
        at_least(0, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
        _in_time,
        always=True,
    ),
    fixed("spec.selector"),
)
replica_set: Final = checks(
    inside(
        "spec",
        at_least(0, "replicas", "minReadySeconds"),
        _selecting("deployment", _UNREADABLE, "ReplicaSet"),
        always=True,
    ),
    fixed("spec.selector"),
)
daemon_set: Final = checks(
    fixed("spec.selector"),
    inside(
        "spec",
        _selecting("daemonset", _UNREADABLE, "DaemonSet"),
        at_least(0, "minReadySeconds"),
        inside("updateStrategy", _daemon),
        at_least(0, "revisionHistoryLimit"),
        always=True,
    ),
)
stateful_set: Final = checks(
    inside(
        "spec",
        _pod_management,
        inside("updateStrategy", _stateful),
        inside(
            "persistentVolumeClaimRetentionPolicy",
            choice("whenDeleted", _RETAINED),
            choice("whenScaled", _RETAINED),
        ),
        on_create(each("volumeClaimTemplates", claim_spec)),
        at_least(0, "replicas", "minReadySeconds", "ordinals.start"),
        on_create(words("serviceName", names.label)),
        _selecting("statefulset", "", "StatefulSet", _identified),
        on_update(_stateful_kept),
        always=True,
    ),
)


def stateful_set_warnings(new: Object, old: Object | None) -> list[str]:
    found = podwarnings.template("spec", "template")(new, old)
    if (new["spec"].get("revisionHistoryLimit") or 0) < 0:
        told = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {told}")
    return found


def replication_controller_warnings(new: Object, old: Object | None) -> list[str]:
    """A real server warns of the template that was there before, where it changes."""
    found = podwarnings.template("spec", "template")
    return found(new, None) if old is None else found(old, new)


replication_controller: Final = checks(
    inside(
        "spec",
        at_least(0, "minReadySeconds"),
        needed("selector"),
        at_least(0, "replicas"),
        _controlled,
        always=True,
    ),
)


def disruption_budget(new: Object, old: Object | None) -> list[FieldError]:
    spec = new["spec"]
    found: list[FieldError] = []
    low, high = spec.get("minAvailable"), spec.get("maxUnavailable")
    if low is not None and high is not None:
        internal = {
            "MinAvailable": low,
            "Selector": spec.get("selector"),
            "MaxUnavailable": high,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        told = "minAvailable and maxUnavailable cannot be both set"
        found.append(FieldError("FieldValueInvalid", "spec", f"Invalid value: {go_shape(internal)}: {told}"))
    for key in ("minAvailable", "maxUnavailable"):
        if spec.get(key) is not None:
            found += number_or_percent(f"spec.{key}", spec[key])
    found += selector("spec.selector", spec.get("selector"))
    return found + choice("spec.unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"))(new, old, "")
