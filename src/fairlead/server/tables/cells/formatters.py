"""Cell functions that several kinds use. Most functions here take a path and return a function from object to cell."""

from collections.abc import Callable
from typing import Any

from fairlead.server.registry.resource import Object

NONE, UNSET = "<none>", "<unset>"
Cell = Callable[[Object], Any]


def at(obj: Any, *path: str) -> Any:
    """Return the value at a path of keys, or None if a key is missing."""
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def count(*path: str) -> Cell:
    """Return a cell function for the number at a path, 0 if it is missing."""
    return lambda obj: at(obj, *path) or 0


def text(*path: str, empty: str = NONE) -> Cell:
    """Return a cell function for the text at a path, or `empty` if it is missing."""
    return lambda obj: str(value) if (value := at(obj, *path)) not in (None, "") else empty


def ratio(actual: tuple[str, ...], desired: tuple[str, ...]) -> Cell:
    """Return a cell function for two numbers such as 1/3."""
    return lambda obj: f"{at(obj, *actual) or 0}/{at(obj, *desired) or 0}"


def containers(field: str, *path: str) -> Cell:
    """Return a cell function for one field of all containers, joined by commas."""
    return lambda obj: ",".join(c.get(field) or "" for c in at(obj, *path, "containers") or ())


def labels(*path: str) -> Cell:
    """Return a cell function for the labels at a path, such as a=1,b=2."""

    def cell(obj: Object) -> str:
        labels = at(obj, *path) or {}
        return ",".join(f"{k}={v}" for k, v in sorted(labels.items())) or NONE

    return cell


def selector(*path: str) -> Cell:
    """Return a cell function for the label selector at a path."""

    def cell(obj: Object) -> str:
        value = at(obj, *path)
        if value is None:
            return NONE
        requirements = [(k, f"{k}={v}") for k, v in (value.get("matchLabels") or {}).items()]
        for expression in value.get("matchExpressions") or ():
            values = ",".join(sorted(expression.get("values") or ()))
            key = expression["key"]
            text_by_operator = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
            requirements.append((key, text_by_operator.get(expression["operator"], f"!{key}")))
        return ",".join(text for _, text in sorted(requirements)) or NONE

    return cell


def first_three(values: list[str]) -> str:
    """Join the first three values, and add how many more there are."""
    return ",".join(values[:3]) + (f" + {len(values) - 3} more..." if len(values) > 3 else "")


def phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else at(obj, "status", "phase") or ""


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def modes(*path: str) -> Cell:
    """Return a cell function for the short names of the access modes at a path, in a fixed order."""
    return lambda obj: ",".join(abbreviation for mode, abbreviation in _MODES.items() if mode in (at(obj, *path) or ()))


def size(*path: str) -> Cell:
    """Return a cell function for the number of items in the list or map at a path."""
    return lambda obj: len(at(obj, *path) or ())


def flag(*path: str) -> Cell:
    """Return a cell function for whether the value at a path is true."""
    return lambda obj: bool(at(obj, *path))


def class_name(*annotations: str) -> Cell:
    """Return a cell function for the name of a class, with "(default)" if one of the annotations is "true"."""

    def cell(obj: Object) -> str:
        values, name = obj["metadata"].get("annotations") or {}, obj["metadata"].get("name") or ""
        return f"{name} (default)" if any(values.get(key) == "true" for key in annotations) else name

    return cell


def storage_class(obj: Object) -> str:
    """Return the storage class of a volume or claim. The beta annotation takes precedence over the spec."""
    annotation = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(annotation if annotation is not None else at(obj, "spec", "storageClassName") or "")


def load_balancer_addresses(obj: Object) -> str:
    """Return the addresses in the load balancer status, sorted and without duplicates."""
    ingress = at(obj, "status", "loadBalancer", "ingress") or ()
    return ",".join(sorted({p.get("ip") or p.get("hostname") or "" for p in ingress} - {""}))
