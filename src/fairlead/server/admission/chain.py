"""The admission chain: it adds the values of LimitRanges and classes to new objects, and rejects writes they forbid.

As on a real server, the chain adds values before an object is prepared and validated, and rejects it afterwards.
"""

from typing import TYPE_CHECKING

from fairlead.server.admission import classes, limit_ranges, volume_expansion
from fairlead.server.errors.statuses import forbidden
from fairlead.server.registry.resource import Object, Resource

if TYPE_CHECKING:
    from fairlead.server.app import Server

_COMPLETED_KINDS = {("", "Pod"), ("", "PersistentVolumeClaim"), ("networking.k8s.io", "Ingress")}
_PRIORITY_CLASS = ("scheduling.k8s.io", "PriorityClass")


def complete(server: "Server", resource: Resource, namespace: str, obj: Object) -> Object:
    """Return a new object with the values that LimitRanges and classes add, or `obj` itself if they add nothing."""
    if (resource.group, resource.kind) not in _COMPLETED_KINDS:
        return obj
    if resource.kind == "Pod":
        obj = limit_ranges.set_defaults(obj, _list_stored(server, "", "limitranges", namespace))
    try:
        return classes.complete(resource.kind, obj, lambda group, plural: _list_stored(server, group, plural))
    except classes.RejectedByClass as error:
        raise forbidden(resource, obj["metadata"].get("name") or "", str(error)) from None


def validate(server: "Server", resource: Resource, namespace: str, obj: Object, old: Object | None) -> None:
    """Raise 403 if a LimitRange or a class in the store does not permit a valid object. `old` is None for a create."""
    error, kind = "", (resource.group, resource.kind)
    if kind == _PRIORITY_CLASS:
        error = classes.check_default_priority(obj, lambda group, plural: _list_stored(server, group, plural))
    elif kind == ("", "Pod") and old is None:
        error = limit_ranges.check_pod(obj, _list_stored(server, "", "limitranges", namespace))
    elif kind == ("", "PersistentVolumeClaim"):
        error = limit_ranges.check_claim(obj, _list_stored(server, "", "limitranges", namespace))
        if old is not None and not error:
            table = server.store.table("storage.k8s.io", "storageclasses")
            error = volume_expansion.check_expansion(
                obj, old, lambda name: stored.object if (stored := table.get("", name)) else None
            )
    if error:
        raise forbidden(resource, obj["metadata"].get("name") or "", error)


def _list_stored(server: "Server", group: str, plural: str, namespace: str = "") -> list[Object]:
    return [stored.object for _, stored in server.store.table(group, plural).scan(namespace)]
