"""The words that the cells of Tables are made of."""

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
    return lambda obj: str(found) if (found := at(obj, *path)) not in (None, "") else empty


def ratio(done: tuple[str, ...], wanted: tuple[str, ...]) -> Cell:
    return lambda obj: f"{at(obj, *done) or 0}/{at(obj, *wanted) or 0}"


def containers(field: str, *path: str) -> Cell:
    return lambda obj: ",".join(c.get(field) or "" for c in at(obj, *path, "containers") or ())


def labels(*path: str) -> Cell:
    def cell(obj: Object) -> str:
        found = at(obj, *path) or {}
        return ",".join(f"{k}={v}" for k, v in sorted(found.items())) or NONE

    return cell


def selector(*path: str) -> Cell:
    def cell(obj: Object) -> str:
        found = at(obj, *path)
        if found is None:
            return NONE
        parts = [(k, f"{k}={v}") for k, v in (found.get("matchLabels") or {}).items()]
        for one in found.get("matchExpressions") or ():
            values = ",".join(sorted(one.get("values") or ()))
            key = one["key"]
            shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
            parts.append((key, shown.get(one["operator"], f"!{key}")))
        return ",".join(text for _, text in sorted(parts)) or NONE

    return cell


def few(found: list[str]) -> str:
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "")


def phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else at(obj, "status", "phase") or ""


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def modes(*path: str) -> Cell:
    """Access modes, each once and in one order."""
    return lambda obj: ",".join(short for mode, short in _MODES.items() if mode in (at(obj, *path) or ()))


def size(*path: str) -> Cell:
    """How many there are."""
    return lambda obj: len(at(obj, *path) or ())


def flag(*path: str) -> Cell:
    return lambda obj: bool(at(obj, *path))


def named(*annotations: str) -> Cell:
    """A class's name, and whether it is the default."""

    def cell(obj: Object) -> str:
        given, name = obj["metadata"].get("annotations") or {}, obj["metadata"].get("name") or ""
        return f"{name} (default)" if any(given.get(key) == "true" for key in annotations) else name

    return cell


def storage_class(obj: Object) -> str:
    """The class of a volume or claim, which an annotation named once."""
    old = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(old if old is not None else at(obj, "spec", "storageClassName") or "")


def points(obj: Object) -> str:
    """Where a load balancer is reached, each once and sorted."""
    given = at(obj, "status", "loadBalancer", "ingress") or ()
    return ",".join(sorted({p.get("ip") or p.get("hostname") or "" for p in given} - {""}))
