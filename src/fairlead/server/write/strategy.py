"""The rules of a kind as the pipeline asks for them: validation, generation, what keeps an object alive."""

from collections.abc import Callable
from typing import Any

from fairlead.server.admission import namespaces
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import forbidden
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.registry.resource import Object, Resource, Retold
from fairlead.server.schema import validation
from fairlead.server.write import metadata


def _at(obj: Object, path: str) -> Any:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _type_meta(resource: Resource, obj: Object) -> list[FieldError]:
    """A custom resource's kind and apiVersion are checked like any other field."""
    wanted = {"kind": resource.kind, "apiVersion": resource.api_version}
    return [
        field_errors.invalid(key, obj.get(key) or "", f"must be {value}")
        for key, value in wanted.items()
        if obj.get(key) != value
    ]


def _replicas(resource: Resource, obj: Object, *, status_only: bool = False) -> list[FieldError]:
    """The replicas behind a custom resource's /scale are integers, not negative and not too large."""
    found: list[FieldError] = []
    keys = ("statusReplicasPath",) if status_only else ("specReplicasPath", "statusReplicasPath")
    for key in keys if resource.scale else ():
        path = resource.scale[key]
        value, wrong = _integer_at(obj, path.removeprefix(".").split("."))
        if wrong:
            found.append(field_errors.invalid(path, 0, wrong))
        elif value < 0:
            found.append(field_errors.invalid(path, value, "should be a non-negative integer"))
        elif value > _MOST_REPLICAS:
            found.append(field_errors.invalid(path, value, f"should be less than or equal to {_MOST_REPLICAS}"))
    return found


_MOST_REPLICAS = 2**31 - 1


def _integer_at(obj: Object, parts: list[str]) -> tuple[int, str]:
    """The integer at a path, 0 where nothing is; or 0 and why what is there is none."""
    value: Any = obj
    for index, part in enumerate(parts):
        if value is None:
            return 0, ""
        if not isinstance(value, dict):
            return 0, _accessor_error(parts[: index + 1], value, "map[string]interface{}")
        if part not in value:
            return 0, ""
        value = value[part]
    return (value, "") if type(value) is int else (0, _accessor_error(parts, value, "int64"))


def _accessor_error(parts: list[str], value: Any, wanted: str) -> str:
    shown = f"{field_errors.format_go(value)} is of the type {_GO[type(value)]}"
    return f".{'.'.join(parts)} accessor error: {shown}, expected {wanted}"


_GO = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def _unqualified(obj: Object, old: Object | None) -> list[str]:
    """Custom resources may have finalizers without a domain, with a warning when one is added."""
    before = (old["metadata"].get("finalizers") or ()) if old else ()
    return [
        f"metadata.finalizers: {field_errors.quote_go(name)}: prefer a domain-qualified finalizer name to avoid "
        "accidental conflicts with other finalizer writers"
        for name in obj["metadata"].get("finalizers") or ()
        if "/" not in name and name not in metadata.STANDARD_FINALIZERS and name not in before
    ]


def _retold(how: Retold, changed: list[FieldError], new: Object, resource: Resource) -> list[FieldError]:
    found: list[FieldError] = []
    if how in ("twice", "once", "loosely"):
        found += changed
    if how in ("twice", "once"):
        found += metadata.standard_finalizers(new, resource)
    if how in ("twice", "as new", "as new twice"):
        found += metadata.validate(new, resource) * (2 if how == "as new twice" else 1)
    return found


class Rules:
    """Answers for every kind from its Resource; nothing here is per request."""

    def on_create(self, resource: Resource, obj: Object) -> list[FieldError]:
        if resource.custom and (wrong := _type_meta(resource, obj)):
            return wrong + validation.validate(resource.schema, obj, by_schema=False)
        found = metadata.validate(obj["metadata"], resource)
        if resource.custom:
            found += validation.validate(resource.schema, obj) + _replicas(resource, obj)
        return found + (resource.validate(obj, None) if resource.validate else [])

    def on_update(
        self, resource: Resource, subresource: str, obj: Object, old: Object, warn: Callable[[str], None]
    ) -> list[FieldError]:
        """A kind's own validation looks at the metadata too: its errors are told more than once."""
        status = subresource == "status"
        changed = metadata.validate_update(obj["metadata"], old["metadata"])
        found = metadata.validate(obj["metadata"], resource, generic=True) + changed
        if resource.custom and (wrong := _type_meta(resource, obj)):
            found += wrong
            return found + validation.validate(
                resource.schema, obj, old, status_only=status, by_schema=False, warn=warn
            )
        if resource.custom:
            found += changed
            found += validation.validate(resource.schema, obj, old, status_only=status, warn=warn)
            return found + _replicas(resource, obj, status_only=status)
        retold = resource.status_metadata_retold if status else resource.metadata_retold
        found += _retold(retold, changed, obj["metadata"], resource)
        check = resource.validate_status if status else resource.validate
        return found + (check(obj, old) if check else [])

    def warnings(self, resource: Resource, obj: Object, old: Object | None) -> list[str]:
        if resource.custom:
            return _unqualified(obj, old)
        return resource.warn(obj, old) if resource.warn else []

    def generation(self, resource: Resource, subresource: str, obj: Object, old: Object, changed: bool = False) -> None:
        """Kinds with a generation count the changes of what is wanted: of a custom resource, all but its metadata.

        `changed` says that something did which is not stored.
        """
        if not resource.has_generation or subresource == "status":
            return
        if resource.custom:
            ignored = {"metadata", "status"} if resource.status else {"metadata"}
            changed = not exactly_equal(
                {k: v for k, v in obj.items() if k not in ignored}, {k: v for k, v in old.items() if k not in ignored}
            )
        elif not changed:
            changed = any(not exactly_equal(_at(obj, path), _at(old, path)) for path in resource.generation_of)
        if changed:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def may_finish(self, resource: Resource, obj: Object) -> bool:
        """Whether an object without metadata.finalizers may go: a Namespace has finalizers of its own in its spec."""
        return not (resource.kind == "Namespace" and not resource.group and obj.get("spec", {}).get("finalizers"))

    def on_delete(self, resource: Resource, obj: Object) -> None:
        """Refuse deletes that must never happen."""
        if resource.kind == "Namespace" and not resource.group and obj["metadata"]["name"] in namespaces.IMMORTAL:
            name = obj["metadata"]["name"]
            raise forbidden(resource, name, "this namespace may not be deleted")

    def grace(self, resource: Resource, obj: Object, asked: int | None) -> int | None:
        """Seconds of grace of a kind that is deleted gracefully (Pods), None for every other."""
        if resource.kind != "Pod" or resource.group:
            return None
        spec, status = obj["spec"], obj.get("status") or {}
        grace = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        return 1 if grace < 0 else int(grace)

    def collects(self, resource: Resource) -> bool:
        """Whether a delete says what becomes of dependents: nothing depends on Events."""
        return resource.kind != "Event" or resource.group not in ("", "events.k8s.io")

    def orphans_by_default(self, resource: Resource) -> bool:
        """Jobs and ReplicationControllers leave their Pods behind unless told otherwise."""
        return (resource.group, resource.kind) in (("batch", "Job"), ("", "ReplicationController"))
