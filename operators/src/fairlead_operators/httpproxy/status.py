"""Compute the status of an HTTPProxy from its Gateway."""

from typing import Any

import fairlead as fl
from fairlead_operators.httpproxy.kinds import GATEWAY_DOMAIN


def canonical_hostname(gateway: fl.Object) -> str:
    """Return the hostname that the gateway controller assigns to a Gateway: its uid and GATEWAY_DOMAIN."""
    return f"{gateway.uid.replace('-', '')}.{GATEWAY_DOMAIN}"


def is_status_current(gateway: fl.Object) -> bool:
    """Return whether the Gateway's status describes its current generation."""
    return ((gateway.condition("Accepted") or {}).get("observedGeneration") or 0) == gateway.generation


def hostname_statuses(proxy: fl.Object, gateway: fl.Object) -> list[dict[str, Any]]:
    """Return the status of each hostname in the spec: whether the gateway controller accepted it, and why not."""
    reports = {listener["name"]: listener for listener in gateway.status.get("listeners") or ()}
    return [
        {"hostname": hostname, "conditions": [_accepted_condition(reports.get(f"https-hostname-{i}") or {})]}
        for i, hostname in enumerate(proxy.spec.get("hostnames") or ())
    ]


def _accepted_condition(listener: dict[str, Any]) -> dict[str, Any]:
    for condition in listener.get("conditions") or ():
        if condition["type"] == "Accepted":
            reason, message = condition["reason"], condition.get("message") or ""
            return {"type": "Accepted", "status": condition["status"], "reason": reason, "message": message}
    return {"type": "Accepted", "status": "Unknown", "reason": "Pending", "message": ""}


def served_hostnames(proxy: fl.Object, gateway: fl.Object) -> list[str]:
    """Return the hostnames that the Gateway serves: the assigned one, and the accepted ones from the spec."""
    assigned = [listener["hostname"] for listener in gateway.spec["listeners"][:1] if listener.get("hostname")]
    accepted = [s["hostname"] for s in hostname_statuses(proxy, gateway) if s["conditions"][0]["status"] == "True"]
    return assigned + accepted


def is_policy_programmed(policy: fl.Object) -> bool:
    """Return whether the data plane has programmed the current generation of the policy."""
    conditions = [c for ancestor in policy.status.get("ancestors") or () for c in ancestor.get("conditions") or ()]
    return any(
        c["type"] == "Programmed" and c["status"] == "True" and c.get("observedGeneration") == policy.generation
        for c in conditions
    )
