"""Updates of a CertificateSigningRequest: /approval decides, /status issues the certificate."""

from typing import Any, Final

Object = dict[str, Any]
DECISIONS: Final = ("Approved", "Denied")  # the conditions that only /approval adds


def keep_certificate(obj: Object, old: Object) -> Object:
    """Return `obj` with the certificate of the live object, which /approval cannot change."""
    status = {key: value for key, value in (obj.get("status") or {}).items() if key != "certificate"}
    certificate = (old.get("status") or {}).get("certificate")
    return {**obj, "status": {**status, "certificate": certificate} if certificate else status}


def keep_decisions(obj: Object, old: Object) -> Object:
    """Return `obj` with the live decisions in place of its own, because /status cannot change what was decided."""
    live = {
        condition.get("type"): condition
        for condition in (old.get("status") or {}).get("conditions") or ()
        if condition.get("type") in DECISIONS
    }
    conditions = (obj.get("status") or {}).get("conditions")
    if not conditions or not live:
        return obj
    kept = [live.pop(condition.get("type"), condition) for condition in conditions]
    return {**obj, "status": {**obj["status"], "conditions": kept}}


def set_condition_times(obj: Object, old: Object, now: str) -> None:
    """Set the missing times of the conditions. A condition with an unchanged status keeps its transition time."""
    conditions = (obj.get("status") or {}).get("conditions")
    if not conditions:
        return
    transitions = {
        (condition.get("type"), condition.get("status")): condition.get("lastTransitionTime")
        for condition in (old.get("status") or {}).get("conditions") or ()
    }
    timed = [
        {
            **condition,
            "lastUpdateTime": condition.get("lastUpdateTime") or now,
            "lastTransitionTime": condition.get("lastTransitionTime")
            or transitions.get((condition.get("type"), condition.get("status")))
            or now,
        }
        for condition in conditions
    ]
    obj["status"] = {**obj["status"], "conditions": timed}
