"""Common cell functions: each returns a function from an object to the text or number of its cell."""

from collections.abc import Callable
from typing import Any

from fairlead.server.registry.resource import Object

NONE, UNSET = "<none>", "<unset>"
Cell = Callable[[Object], Any]


def at(obj: Any, *path: str) -> Any:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def count(*path: str) -> Cell:
    return lambda obj: at(obj, *path) or 0


def text(*path: str, empty: str = NONE) -> Cell:
    return lambda obj: str(value) if (value := at(obj, *path)) not in (None, "") else empty


def ratio(actual: tuple[str, ...], desired: tuple[str, ...]) -> Cell:
    return lambda obj: f"{at(obj, *actual) or 0}/{at(obj, *desired) or 0}"


def containers(field: str, *path: str) -> Cell:
    return lambda obj: ",".join(c.get(field) or "" for c in at(obj, *path, "containers") or ())


def labels(*path: str) -> Cell:
    def cell(obj: Object) -> str:
        labels = at(obj, *path) or {}
        return ",".join(f"{k}={v}" for k, v in sorted(labels.items())) or NONE

    return cell


def selector(*path: str) -> Cell:
    def cell(obj: Object) -> str:
        value = at(obj, *path)
        if value is None:
            return NONE
        parts = [(k, f"{k}={v}") for k, v in (value.get("matchLabels") or {}).items()]
        for expression in value.get("matchExpressions") or ():
            values = ",".join(sorted(expression.get("values") or ()))
            key = expression["key"]
            shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
            parts.append((key, shown.get(expression["operator"], f"!{key}")))
        return ",".join(text for _, text in sorted(parts)) or NONE

    return cell


def first_three(values: list[str]) -> str:
    return ",".join(values[:3]) + (f" + {len(values) - 3} more..." if len(values) > 3 else "")


def phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else at(obj, "status", "phase") or ""


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def modes(*path: str) -> Cell:
    """The access modes, without duplicates and in a fixed order."""
    return lambda obj: ",".join(short for mode, short in _MODES.items() if mode in (at(obj, *path) or ()))


def size(*path: str) -> Cell:
    """The number of items."""
    return lambda obj: len(at(obj, *path) or ())


def flag(*path: str) -> Cell:
    return lambda obj: bool(at(obj, *path))


def class_name(*annotations: str) -> Cell:
    """The name of a class, and whether it is the default."""

    def cell(obj: Object) -> str:
        values, name = obj["metadata"].get("annotations") or {}, obj["metadata"].get("name") or ""
        return f"{name} (default)" if any(values.get(key) == "true" for key in annotations) else name

    return cell


def storage_class(obj: Object) -> str:
    """Return the storage class of a volume or claim. An old annotation takes precedence."""
    annotation = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(annotation if annotation is not None else at(obj, "spec", "storageClassName") or "")


def load_balancer_addresses(obj: Object) -> str:
    """Return the addresses of a load balancer, without duplicates and sorted."""
    ingress = at(obj, "status", "loadBalancer", "ingress") or ()
    return ",".join(sorted({p.get("ip") or p.get("hostname") or "" for p in ingress} - {""}))
