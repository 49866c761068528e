"""Admission: what other objects in the store make of a write, and why they refuse it.

As on a real server a new object is completed before it is prepared and validated, and may be refused after.
"""

from typing import TYPE_CHECKING

from fairlead.server.admission import classes, limit_ranges, volume_expansion
from fairlead.server.errors.statuses import forbidden
from fairlead.server.registry.resource import Object, Resource

if TYPE_CHECKING:
    from fairlead.server.app import Server

_KINDS = {("", "Pod"), ("", "PersistentVolumeClaim"), ("networking.k8s.io", "Ingress")}
_PRIORITY = ("scheduling.k8s.io", "PriorityClass")


def completed(server: "Server", resource: Resource, namespace: str, obj: Object) -> Object:
    """A new object with what LimitRanges and classes give it; the very object where that is nothing."""
    if (resource.group, resource.kind) not in _KINDS:
        return obj
    if resource.kind == "Pod":
        obj = limit_ranges.limited(obj, _all(server, "", "limitranges", namespace))
    try:
        return classes.completed(resource.kind, obj, lambda group, plural: _all(server, group, plural))
    except classes.Refused as error:
        raise forbidden(resource, obj["metadata"].get("name") or "", str(error)) from None


def expect_allowed(server: "Server", resource: Resource, namespace: str, obj: Object, old: Object | None) -> None:
    """Refuse a valid object that a LimitRange or a class of the store does not allow."""
    told, kind = "", (resource.group, resource.kind)
    if kind == _PRIORITY:
        told = classes.second_default(obj, lambda group, plural: _all(server, group, plural))
    elif kind == ("", "Pod") and old is None:
        told = limit_ranges.refusal(obj, _all(server, "", "limitranges", namespace))
    elif kind == ("", "PersistentVolumeClaim"):
        told = limit_ranges.claim_refusal(obj, _all(server, "", "limitranges", namespace))
        if old is not None and not told:
            known = server.store.table("storage.k8s.io", "storageclasses")
            told = volume_expansion.refusal(obj, old, lambda name: at.object if (at := known.get("", name)) else None)
    if told:
        raise forbidden(resource, obj["metadata"].get("name") or "", told)


def _all(server: "Server", group: str, plural: str, namespace: str = "") -> list[Object]:
    return [stored.object for _, stored in server.store.table(group, plural).scan(namespace)]
