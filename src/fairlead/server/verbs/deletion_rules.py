"""The rules of single kinds for deletion: Namespaces, Pods, Jobs, Events and others."""

from fairlead.server.registry.resource import Object, Resource


def can_be_removed(resource: Resource, obj: Object) -> bool:
    """Return whether an object without metadata.finalizers can be removed. A Namespace also has spec.finalizers."""
    return not (resource.kind == "Namespace" and not resource.group and obj.get("spec", {}).get("finalizers"))


def grace_period(resource: Resource, obj: Object, requested: int | None) -> int | None:
    """Return the grace period in seconds for a delete of a Pod, or None for a kind without graceful deletion."""
    if resource.kind != "Pod" or resource.group:
        return None
    spec, status = obj["spec"], obj.get("status") or {}
    seconds = requested if requested is not None else spec.get("terminationGracePeriodSeconds") or 0
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    return 1 if seconds < 0 else int(seconds)


def supports_propagation(resource: Resource) -> bool:
    """Return whether a delete has a propagation policy. Events have none, because nothing depends on them."""
    return resource.kind != "Event" or resource.group not in ("", "events.k8s.io")


def orphans_dependents_by_default(resource: Resource) -> bool:
    """Return whether a delete leaves the dependents by default, as for Jobs and ReplicationControllers."""
    return (resource.group, resource.kind) in (("batch", "Job"), ("", "ReplicationController"))
