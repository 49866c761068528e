"""What an HTTPProxy says about itself, read off its Gateway."""

from typing import Any

import fairlead as fl
from fairlead_operators.httpproxy.kinds import GATEWAY_DOMAIN


def canonical_hostname(gateway: fl.Object) -> str:
    """The name under which the gateway controller makes this Gateway reachable."""
    return f"{gateway.uid.replace('-', '')}.{GATEWAY_DOMAIN}"


def seen_by_its_controller(gateway: fl.Object) -> bool:
    """Whether what the Gateway's status says is about the Gateway as it is now."""
    return ((gateway.condition("Accepted") or {}).get("observedGeneration") or 0) == gateway.generation


def hostname_statuses(proxy: fl.Object, gateway: fl.Object) -> list[dict[str, Any]]:
    """For each hostname of the user's, whether the gateway took it: it refuses unverified ones and taken ones."""
    reports = {listener["name"]: listener for listener in gateway.status.get("listeners") or ()}
    return [
        {"hostname": hostname, "conditions": [_verdict(reports.get(f"https-hostname-{i}") or {})]}
        for i, hostname in enumerate(proxy.spec.get("hostnames") or ())
    ]


def _verdict(listener: dict[str, Any]) -> dict[str, Any]:
    for condition in listener.get("conditions") or ():
        if condition["type"] == "Accepted":
            reason, message = condition["reason"], condition.get("message") or ""
            return {"type": "Accepted", "status": condition["status"], "reason": reason, "message": message}
    return {"type": "Accepted", "status": "Unknown", "reason": "Pending", "message": ""}


def serving(proxy: fl.Object, gateway: fl.Object) -> list[str]:
    """The hostnames that are served: the assigned one and those of the user's that were taken."""
    assigned = [listener["hostname"] for listener in gateway.spec["listeners"][:1] if listener.get("hostname")]
    taken = [s["hostname"] for s in hostname_statuses(proxy, gateway) if s["conditions"][0]["status"] == "True"]
    return assigned + taken


def policy_programmed(policy: fl.Object) -> bool:
    """Whether the data plane has taken the policy, as it is now."""
    said = [c for ancestor in policy.status.get("ancestors") or () for c in ancestor.get("conditions") or ()]
    return any(
        c["type"] == "Programmed" and c["status"] == "True" and c.get("observedGeneration") == policy.generation
        for c in said
    )
