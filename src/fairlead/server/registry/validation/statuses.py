"""What a status may say: counts that are not negative, and no part larger than its whole."""

import re
from collections.abc import Iterable
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import Check, Rule, at_least, checks, inside
from fairlead.server.registry.validation.vocabulary import Object, address, at, one_of, qualified, subdomain

_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_TOLD: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or "
    "'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


def _within(*parts: str, ready: str) -> Rule:
    """Parts of `replicas`; those that are available are ready as well, which a message calls `ready`."""

    def rule(status: Object, old: Object | None, path: str) -> list[FieldError]:
        whole, is_ready = (status.get(key) or 0 for key in ("replicas", "readyReplicas"))
        counted = [(key, status.get(key) or 0) for key in parts]
        told = "cannot be greater than status.replicas"
        found = [field_errors.invalid(f"{path}.{key}", count, told) for key, count in counted if count > whole]
        available = status.get("availableReplicas") or 0
        if available > is_ready:
            found.append(
                field_errors.invalid(f"{path}.availableReplicas", available, f"cannot be greater than {ready}")
            )
        return found

    return rule


def _collisions(status: Object, old: Object | None, path: str) -> list[FieldError]:
    count, before = ((one or {}).get("collisionCount") for one in (status, old))
    if before is None or (count is not None and count >= before):
        return []
    return [field_errors.invalid(f"{path}.collisionCount", count or 0, "cannot be decremented")]


def _conditions(status: Object, old: Object | None, path: str) -> list[FieldError]:
    """Conditions as all kinds may have them: each once, whole and well-formed."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, one in enumerate(status.get("conditions") or ()):
        here, kind, reason = f"{path}.conditions[{index}]", one.get("type") or "", one.get("reason") or ""
        if kind in seen:
            found.append(field_errors.duplicate(f"{here}.type", kind))
        seen.add(kind)
        found += qualified(f"{here}.type", kind) + one_of(f"{here}.status", one.get("status"), _STATUSES)
        found += at_least(0, "observedGeneration", told="must be greater than or equal to zero")(one, None, here)
        if one.get("lastTransitionTime") is None:
            found.append(field_errors.required(f"{here}.lastTransitionTime"))
        if not reason:
            found.append(field_errors.required(f"{here}.reason"))
        elif not _REASON.fullmatch(reason):
            found.append(field_errors.invalid(f"{here}.reason", reason, _REASON_TOLD))
        for key, most in (("reason", 1024), ("message", 32 * 1024)):
            found += [field_errors.too_long(f"{here}.{key}", most)] if len(one.get(key) or "") > most else []
    return found


def _balanced(new: Object, old: Object | None) -> list[FieldError]:
    """Where a load balancer answers: addresses and names."""
    found: list[FieldError] = []
    for index, ingress in enumerate(at(new, "status.loadBalancer.ingress") or ()):
        path = f"status.loadBalancer.ingress[{index}]"
        found += address(f"{path}.ip", ingress["ip"]) if ingress.get("ip") else []
        if name := ingress.get("hostname"):
            found += subdomain(f"{path}.hostname", name)
            if not address("", name):
                found.append(field_errors.invalid(f"{path}.hostname", name, "must be a DNS name, not an IP address"))
    return found


def pod(new: Object, old: Object | None) -> list[FieldError]:
    """What a Pod's class was it stays; of its addresses, and of its host's, there is one of each family."""
    status, before = new.get("status") or {}, (old or {}).get("status") or {}
    found: list[FieldError] = []
    if before.get("qosClass") and before["qosClass"] != status.get("qosClass"):
        found.append(field_errors.invalid("status.qosClass", status.get("qosClass") or "", "field is immutable"))
    found += _pair("status.podIPs", status.get("podIPs") or [], before.get("podIPs") or [])
    hosts = status.get("hostIPs") or []
    if hosts and hosts[0].get("ip") != status.get("hostIP"):
        told = "must be equal to `hostIP`"
        found.append(field_errors.invalid("status.hostIPs[0].ip", hosts[0].get("ip") or "", told))
    return found + _pair("status.hostIPs", hosts, before.get("hostIPs") or [])


def _pair(path: str, given: list[Object], before: list[Object]) -> list[FieldError]:
    found: list[FieldError] = []
    for index, one in enumerate(given):
        if one not in before:
            found += address(f"{path}[{index}]", one.get("ip") or "")
    if not found and len(given) > 1 and (len(given) > 2 or len({":" in one["ip"] for one in given}) < 2):
        shown = [{"IP": one["ip"]} for one in given]
        found.append(field_errors.invalid(path, shown, "may specify no more than one IP for each IP family"))
    return found


def service(new: Object, old: Object | None) -> list[FieldError]:
    kind, answering = new["spec"].get("type"), at(new, "status.loadBalancer.ingress") or ()
    if answering and kind != "LoadBalancer":
        told = "may only be used when `spec.type` is 'LoadBalancer'"
        return [field_errors.forbidden("status.loadBalancer.ingress", told)]
    modes: list[FieldError] = []
    for index, ingress in enumerate(answering):
        field = f"status.loadBalancer.ingress[{index}].ipMode"
        mode, given = ingress.get("ipMode"), ingress.get("ip")
        if mode is None and given:
            modes.append(field_errors.required(field, "must be specified when `ip` is set"))
        elif mode is not None and not given:
            modes.append(field_errors.forbidden(field, "may not be specified when `ip` is not set"))
        elif mode not in (None, "Proxy", "VIP"):
            modes.append(field_errors.not_supported(field, mode, ("Proxy", "VIP")))
    return modes + _balanced(new, old)


def _status(counts: Iterable[str], *rules: Rule) -> Check:
    return checks(inside("status", at_least(0, *counts), *rules, always=True))


_READY: Final = "readyReplicas"
_SEEN: Final = "observedGeneration"
_LABELED: Final = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_UPDATED: Final = ("updatedReplicas", "readyReplicas", "availableReplicas")

deployment: Final = _status(
    (_SEEN, "replicas", *_UPDATED, "unavailableReplicas", "terminatingReplicas", "collisionCount"),
    _within(*_UPDATED, ready=_READY),
    _collisions,
)
replica_set: Final = _status(
    ("replicas", *_LABELED, _SEEN, "terminatingReplicas"),
    _within(*_LABELED, ready=_READY),
)
replication_controller: Final = _status(("replicas", *_LABELED, _SEEN), _within(*_LABELED, ready=_READY))
stateful_set: Final = _status(
    ("replicas", *_UPDATED, "currentReplicas", _SEEN, "collisionCount"),
    _within("currentReplicas", *_UPDATED, ready=f"status.{_READY}"),
    _collisions,
)
daemon_set: Final = _status(
    (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", _SEEN,
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
    ),
    _collisions,
)  # fmt: skip
ingress: Final = _balanced
autoscaler: Final = _status(("currentReplicas", "desiredReplicas"))
disruption_budget: Final = _status(
    ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), _conditions
)
