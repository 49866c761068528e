"""Classes: what a new Pod, claim or Ingress gets from the class that it names, or from the default one.

Priorities and runtimes of Pods, the storage of claims, the controllers of Ingresses. The two priorities of the system
are known without being stored.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from fairlead.server.errors.field_errors import quote_go
from fairlead.server.registry import preparing

Object = dict[str, Any]
Classes = Callable[[str, str], Iterable[Object]]  # all objects of a group and plural
SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PREEMPTS: Final = "PreemptLowerPriority"
_INGRESS: Final = "kubernetes.io/ingress.class"
_STORAGE: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_INGRESS: Final = ("ingressclass.kubernetes.io/is-default-class",)
_DEFAULT_STORAGE: Final = tuple(f"storageclass.{beta}kubernetes.io/is-default-class" for beta in ("", "beta."))
_OVERHEAD: Final = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_NO_OVERHEAD: Final = "Pod Overhead set without corresponding RuntimeClass defined Overhead"


class Refused(Exception):
    """A class forbids the write; the text says why."""


def completed(kind: str, obj: Object, classes: Classes) -> Object:
    """A new object with what its class gives it; the very object where that is nothing. Raises Refused."""
    for rule in _RULES.get(kind, ()):
        obj = rule(obj, classes)
    return obj


def second_default(obj: Object, classes: Classes) -> str:
    """Why a PriorityClass may not be the default, or ""."""
    others = [one for one in _priorities(classes) if one.get("globalDefault") and _name(one) != _name(obj)]
    if not obj.get("globalDefault") or not others:
        return ""
    return f"PriorityClass {_name(min(others, key=_value))} is already marked as default. Only one default can exist"


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name") or "")


def _value(obj: Object) -> int:
    return obj.get("value") or 0


def _priorities(classes: Classes) -> Iterable[Object]:
    return classes("scheduling.k8s.io", "priorityclasses")


def _with(obj: Object, **fields: Any) -> Object:
    return {**obj, "spec": {**(obj.get("spec") or {}), **fields}}


def _prioritised(pod: Object, classes: Classes) -> Object:
    spec = pod["spec"]
    name, value, policy = _priority(spec.get("priorityClassName") or "", classes)
    for key, given, wanted in (("integer value of priority", "priority", value), *_policy(policy)):
        if spec.get(given) is not None and spec[given] != wanted:
            raise Refused(
                f"the {key} ({spec[given]}) must not be provided in pod spec; "
                f"priority admission controller computed {wanted} from the given PriorityClass name"
            )
    named = {"priorityClassName": name} if name else {}
    return _with(pod, **named, priority=value, preemptionPolicy=policy)


def _policy(policy: str) -> list[tuple[str, str, Any]]:
    return [("string value of PreemptionPolicy", "preemptionPolicy", policy)]


def _priority(name: str, classes: Classes) -> tuple[str, int, str]:
    """The class of a name, or the default one: its name, its value and whether it preempts."""
    if name in SYSTEM:
        return name, SYSTEM[name], _PREEMPTS
    known = list(_priorities(classes))
    if name:
        found = next((one for one in known if _name(one) == name), None)
        if found is None:
            raise Refused(f"no PriorityClass with name {name} was found")
    else:
        found = min((one for one in known if one.get("globalDefault")), key=_value, default=None)
        if found is None:
            return "", 0, _PREEMPTS
    return _name(found), _value(found), found.get("preemptionPolicy") or _PREEMPTS


def _tolerating(pod: Object, classes: Classes) -> Object:
    """Before its runtime adds to them, a Pod gets the tolerations that every Pod gets."""
    return {**pod, "spec": preparing.tolerating(pod["spec"])}


def _run(pod: Object, classes: Classes) -> Object:
    spec, name = pod["spec"], pod["spec"].get("runtimeClassName")
    found: Object = {}
    if name is not None:
        known = classes("node.k8s.io", "runtimeclasses")
        named = next((one for one in known if _name(one) == name), None)
        if named is None:
            raise Refused(f"pod rejected: RuntimeClass {quote_go(name)} not found")
        found = named
    overhead, asked = (found.get("overhead") or {}).get("podFixed"), spec.get("overhead")
    if found.get("overhead") is None and asked is not None:
        raise Refused(f"pod rejected: {_NO_OVERHEAD}")
    if asked and found.get("overhead") is not None and asked != overhead:
        raise Refused(f"pod rejected: {_OVERHEAD}")
    pod = _with(pod, overhead=overhead) if overhead else pod
    return _placed(pod, found["scheduling"]) if found.get("scheduling") is not None else pod


def _placed(pod: Object, scheduling: Object) -> Object:
    given, wanted = pod["spec"].get("nodeSelector") or {}, scheduling.get("nodeSelector") or {}
    for key, value in wanted.items():
        if given.get(key, value) != value:
            raise Refused(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {given[key]}"
            )
    selector = {"nodeSelector": {**given, **wanted}} if given or wanted else {}
    tolerations = _merged([*(pod["spec"].get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
    return _with(pod, **selector, **({"tolerations": tolerations} if tolerations else {}))


def _merged(tolerations: list[Object]) -> list[Object]:
    """Tolerations without those that another one covers; of equal ones the first."""
    kept: list[Object] = []
    for index, one in enumerate(tolerations):
        later = [other for other in tolerations[index + 1 :] if other != one]
        if not any(_covers(other, one) for other in [*kept, *later]):
            kept.append(one)
    return kept


def _covers(wide: Object, one: Object) -> bool:
    exists = wide.get("operator") == "Exists"
    if one == wide:
        return True
    if one.get("key") != wide.get("key") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and one.get("effect") != wide["effect"]:
        return False
    seconds, its = wide.get("tolerationSeconds"), one.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and seconds is not None and (its is None or its > seconds):
        return False
    return exists or (one.get("operator") == "Equal" and one.get("value") == wide.get("value"))


def _stored(claim: Object, classes: Classes) -> Object:
    if (claim.get("spec") or {}).get("storageClassName") is not None or _STORAGE in _annotations(claim):
        return claim
    found = _default(classes("storage.k8s.io", "storageclasses"), _DEFAULT_STORAGE)
    return _with(claim, storageClassName=found) if found else claim


def _routed(ingress: Object, classes: Classes) -> Object:
    if (ingress.get("spec") or {}).get("ingressClassName") is not None or _INGRESS in _annotations(ingress):
        return ingress
    found = _default(classes("networking.k8s.io", "ingressclasses"), _DEFAULT_INGRESS)
    return _with(ingress, ingressClassName=found) if found else ingress


def _annotations(obj: Object) -> Object:
    return obj["metadata"].get("annotations") or {}


def _default(classes: Iterable[Object], annotations: tuple[str, ...]) -> str:
    """The name of the newest class that says it is the default, or ""."""
    found = [one for one in classes if any(_annotations(one).get(key) == "true" for key in annotations)]
    found.sort(key=_name)
    found.sort(key=lambda one: one["metadata"]["creationTimestamp"], reverse=True)
    return _name(found[0]) if found else ""


_RULES: Final[dict[str, tuple[Callable[[Object, Classes], Object], ...]]] = {
    "Pod": (_prioritised, _tolerating, _run),
    "PersistentVolumeClaim": (_stored,),
    "Ingress": (_routed,),
}
