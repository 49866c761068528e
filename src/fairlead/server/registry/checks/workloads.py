"""Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and disruption budgets."""

from typing import Final

from fairlead.server import causes
from fairlead.server.causes import Cause
from fairlead.server.registry.checks.pods import pod_spec
from fairlead.server.registry.checks.vocabulary import (
    Object,
    not_negative,
    number_or_percent,
    one_of,
    selector,
    selects,
    unchanged,
)

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


def deployment(new: Object, old: Object | None) -> list[Cause]:
    if old is not None and new["spec"] == old["spec"] and new.get("status") != old.get("status"):
        return _status(new.get("status") or {})
    found = _selecting(new["spec"]) + _rolling(new["spec"].get("strategy") or {}, "spec.strategy")
    if old is not None:
        found += unchanged(new, old, "spec.selector")
    return found


def replica_set(new: Object, old: Object | None) -> list[Cause]:
    return _selecting(new["spec"]) + (unchanged(new, old, "spec.selector") if old is not None else [])


def daemon_set(new: Object, old: Object | None) -> list[Cause]:
    found = _selecting(new["spec"], "daemonset")
    return found + (unchanged(new, old, "spec.selector") if old is not None else [])


def stateful_set(new: Object, old: Object | None) -> list[Cause]:
    found = _selecting(new["spec"])
    if old is not None:
        kept, was = ({k: v for k, v in one["spec"].items() if k not in _STATEFUL_FREE} for one in (new, old))
        if kept != was:
            found.append(causes.forbidden("spec", _STATEFUL))
    return found


def job(new: Object, old: Object | None) -> list[Cause]:
    spec = new["spec"]
    found: list[Cause] = []
    for key in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        found += not_negative(f"spec.{key}", spec.get(key))
    found += pod_spec((spec.get("template") or {}).get("spec") or {}, "spec.template.spec")
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy == "Always":
        told = 'valid values: "OnFailure", "Never"'
        found.append(causes.required("spec.template.spec.restartPolicy", told))
    if old is not None:
        found += unchanged(new, old, "spec.selector", "spec.completionMode", "spec.podFailurePolicy")
        if spec.get("completionMode") != "Indexed":
            found += unchanged(new, old, "spec.completions")
        if not (old["spec"].get("suspend") and not (old.get("status") or {}).get("startTime")):
            found += unchanged(new, old, "spec.template")
    return found


def disruption_budget(new: Object, old: Object | None) -> list[Cause]:
    spec = new["spec"]
    found: list[Cause] = []
    low, high = spec.get("minAvailable"), spec.get("maxUnavailable")
    if low is not None and high is not None:
        internal = {
            "MinAvailable": low,
            "Selector": spec.get("selector"),
            "MaxUnavailable": high,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        told = "minAvailable and maxUnavailable cannot be both set"
        found.append(Cause("FieldValueInvalid", "spec", f"Invalid value: {_in_order(internal)}: {told}"))
    for key in ("minAvailable", "maxUnavailable"):
        if spec.get(key) is not None:
            found += number_or_percent(f"spec.{key}", spec[key])
    return found + selector("spec.selector", spec.get("selector"))


def _in_order(fields: Object) -> str:
    return "{" + ",".join(f'"{key}":{causes.shown(value)}' for key, value in fields.items()) + "}"


def _selecting(spec: Object, kind: str = "deployment") -> list[Cause]:
    """Replicas, a selector that matches the template, and the template."""
    found = not_negative("spec.replicas", spec.get("replicas"))
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    chosen = spec.get("selector")
    empty = chosen is not None and not chosen.get("matchLabels") and not chosen.get("matchExpressions")
    found += selector("spec.selector", chosen)
    if chosen is None and kind != "daemonset":
        found.append(causes.required("spec.selector"))
    if empty:
        found.append(causes.invalid("spec.selector", chosen, f"empty selector is invalid for {kind}"))
    elif not selects(chosen, labels or {}):
        told = "`selector` does not match template `labels`"
        found.append(causes.invalid("spec.template.metadata.labels", labels, told))
    found += pod_spec(template.get("spec") or {}, "spec.template.spec", restarts=_ALWAYS)
    return found


def _rolling(strategy: Object, path: str) -> list[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        told = "may not be specified when strategy `type` is 'Recreate'"
        return [causes.forbidden(f"{path}.rollingUpdate", told)] if rolling is not None else []
    if kind != "RollingUpdate":
        return one_of(f"{path}.type", kind, ("Recreate", "RollingUpdate"))
    rolling = rolling or {}
    found: list[Cause] = []
    for key in ("maxUnavailable", "maxSurge"):
        if isinstance(rolling.get(key), str):
            found += number_or_percent(f"{path}.rollingUpdate.{key}", rolling[key]) if key == "maxUnavailable" else []
        else:
            found += not_negative(f"{path}.rollingUpdate.{key}", rolling.get(key))
    if rolling.get("maxUnavailable") in (0, "0%") and rolling.get("maxSurge") in (0, "0%"):
        told = "may not be 0 when `maxSurge` is 0"
        found.append(causes.invalid(f"{path}.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], told))
    return found


def _status(status: Object) -> list[Cause]:
    """Counts of a status are not negative and no part is larger than the whole."""
    found: list[Cause] = []
    for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"):
        found += not_negative(f"status.{key}", status.get(key))
    whole = status.get("replicas") or 0
    for key in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if (status.get(key) or 0) > whole:
            told = "cannot be greater than status.replicas"
            found.append(causes.invalid(f"status.{key}", status.get(key) or 0, told))
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        told = "cannot be greater than readyReplicas"
        found.append(causes.invalid("status.availableReplicas", status["availableReplicas"], told))
    return found
