"""The plugins that set values of a new Pod, PersistentVolumeClaim or Ingress from its class, or from the default class.

Pods have PriorityClasses and RuntimeClasses, claims have StorageClasses, Ingresses have IngressClasses. The two system
priorities exist without being stored.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

from fairlead.api.gojson import quote_go
from fairlead.server.admission.plugin import CREATE, AdmissionAttributes, AdmissionPlugin
from fairlead.server.registry import prepare

Object = dict[str, Any]
ListObjects = Callable[[str, str], Iterable[Object]]  # lists all objects of a group and plural
_POD: Final = ("", "pods")
_PRIORITY_CLASS: Final = ("scheduling.k8s.io", "priorityclasses")
_PREEMPT_LOWER: Final = "PreemptLowerPriority"
_INGRESS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_STORAGE_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_INGRESS: Final = ("ingressclass.kubernetes.io/is-default-class",)
_DEFAULT_STORAGE: Final = tuple(f"storageclass.{beta}kubernetes.io/is-default-class" for beta in ("", "beta."))
_OTHER_OVERHEAD: Final = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNDEFINED_OVERHEAD: Final = "Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RejectedByClass(Exception):
    """Raised if a class does not permit a write. The message says why."""


class _ClassPlugin(AdmissionPlugin):
    """Completes a new object from its class."""

    operations: ClassVar[tuple[str, ...]] = (CREATE,)

    def complete(self, obj: Object) -> Object:
        """Return a new object with the values of its class, or `obj` itself if its class adds none.

        Raises RejectedByClass.
        """
        raise NotImplementedError

    def admit(self, attributes: AdmissionAttributes) -> None:
        assert attributes.object is not None
        try:
            attributes.object = self.complete(attributes.object)
        except RejectedByClass as error:
            raise attributes.forbid(str(error)) from None


class Priority(_ClassPlugin):
    operations = AdmissionPlugin.operations
    resources = frozenset((_POD, _PRIORITY_CLASS))

    def admit(self, attributes: AdmissionAttributes) -> None:
        if attributes.operation == CREATE and attributes.resource.kind == "Pod":
            super().admit(attributes)

    def complete(self, obj: Object) -> Object:
        return _set_priority(obj, self.list_stored)

    def validate(self, attributes: AdmissionAttributes) -> None:
        if attributes.resource.kind != "PriorityClass" or attributes.object is None:
            return
        if error := check_default_priority(attributes.object, self.list_stored):
            raise attributes.forbid(error)


class DefaultTolerationSeconds(_ClassPlugin):
    resources = frozenset((_POD,))

    def complete(self, obj: Object) -> Object:
        """Return the Pod with the not-ready and unreachable tolerations that every Pod gets."""
        return {**obj, "spec": prepare.add_default_tolerations(obj["spec"])}


class DefaultStorageClass(_ClassPlugin):
    resources = frozenset((("", "persistentvolumeclaims"),))

    def complete(self, obj: Object) -> Object:
        return _set_storage_class(obj, self.list_stored)


class RuntimeClass(_ClassPlugin):
    resources = frozenset((_POD,))

    def complete(self, obj: Object) -> Object:
        return _apply_runtime_class(obj, self.list_stored)


class DefaultIngressClass(_ClassPlugin):
    resources = frozenset((("networking.k8s.io", "ingresses"),))

    def complete(self, obj: Object) -> Object:
        return _set_ingress_class(obj, self.list_stored)


def check_default_priority(obj: Object, list_objects: ListObjects) -> str:
    """Return why a PriorityClass may not be the default one, or "" if it may."""
    classes = _list_priority_classes(list_objects)
    defaults = [other for other in classes if other.get("globalDefault") and _get_name(other) != _get_name(obj)]
    if not obj.get("globalDefault") or not defaults:
        return ""
    name = _get_name(min(defaults, key=_get_priority_value))
    return f"PriorityClass {name} is already marked as default. Only one default can exist"


def _get_name(obj: Object) -> str:
    return str(obj["metadata"].get("name") or "")


def _get_priority_value(obj: Object) -> int:
    return obj.get("value") or 0


def _list_priority_classes(list_objects: ListObjects) -> Iterable[Object]:
    return list_objects("scheduling.k8s.io", "priorityclasses")


def _set_in_spec(obj: Object, **fields: Any) -> Object:
    return {**obj, "spec": {**(obj.get("spec") or {}), **fields}}


def _set_priority(pod: Object, list_objects: ListObjects) -> Object:
    spec = pod["spec"]
    name, value, policy = _find_priority(spec.get("priorityClassName") or "", list_objects)
    computed_fields: tuple[tuple[str, str, Any], ...] = (
        ("integer value of priority", "priority", value),
        ("string value of PreemptionPolicy", "preemptionPolicy", policy),
    )
    for description, field, computed in computed_fields:
        if spec.get(field) is not None and spec[field] != computed:
            raise RejectedByClass(
                f"the {description} ({spec[field]}) must not be provided in pod spec; "
                f"priority admission controller computed {computed} from the given PriorityClass name"
            )
    class_name = {"priorityClassName": name} if name else {}
    return _set_in_spec(pod, **class_name, priority=value, preemptionPolicy=policy)


def _find_priority(name: str, list_objects: ListObjects) -> tuple[str, int, str]:
    """Return name, value and preemption policy of a PriorityClass, or of the default class if `name` is empty."""
    classes = list(_list_priority_classes(list_objects))
    if name:
        priority_class = next((item for item in classes if _get_name(item) == name), None)
        if priority_class is None:
            raise RejectedByClass(f"no PriorityClass with name {name} was found")
    else:
        priority_class = min(
            (item for item in classes if item.get("globalDefault")), key=_get_priority_value, default=None
        )
        if priority_class is None:
            return "", 0, _PREEMPT_LOWER
    policy = priority_class.get("preemptionPolicy") or _PREEMPT_LOWER
    return _get_name(priority_class), _get_priority_value(priority_class), policy


def _apply_runtime_class(pod: Object, list_objects: ListObjects) -> Object:
    spec, name = pod["spec"], pod["spec"].get("runtimeClassName")
    runtime_class: Object = {}
    if name is not None:
        for item in list_objects("node.k8s.io", "runtimeclasses"):
            if _get_name(item) == name:
                runtime_class = item
                break
        else:
            raise RejectedByClass(f"pod rejected: RuntimeClass {quote_go(name)} not found")
    overhead, requested = (runtime_class.get("overhead") or {}).get("podFixed"), spec.get("overhead")
    if runtime_class.get("overhead") is None and requested is not None:
        raise RejectedByClass(f"pod rejected: {_UNDEFINED_OVERHEAD}")
    if requested and runtime_class.get("overhead") is not None and requested != overhead:
        raise RejectedByClass(f"pod rejected: {_OTHER_OVERHEAD}")
    pod = _set_in_spec(pod, overhead=overhead) if overhead else pod
    scheduling = runtime_class.get("scheduling")
    return _set_scheduling(pod, scheduling) if scheduling is not None else pod


def _set_scheduling(pod: Object, scheduling: Object) -> Object:
    pod_selector, class_selector = pod["spec"].get("nodeSelector") or {}, scheduling.get("nodeSelector") or {}
    for key, value in class_selector.items():
        if pod_selector.get(key, value) != value:
            raise RejectedByClass(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {pod_selector[key]}"
            )
    selector = {"nodeSelector": {**pod_selector, **class_selector}} if pod_selector or class_selector else {}
    tolerations = _merge_tolerations([*(pod["spec"].get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
    return _set_in_spec(pod, **selector, **({"tolerations": tolerations} if tolerations else {}))


def _merge_tolerations(tolerations: list[Object]) -> list[Object]:
    """Return the tolerations without those that another toleration covers. Of equal tolerations, keep the first."""
    merged: list[Object] = []
    for index, toleration in enumerate(tolerations):
        later = [other for other in tolerations[index + 1 :] if other != toleration]
        if not any(_covers(other, toleration) for other in [*merged, *later]):
            merged.append(toleration)
    return merged


def _covers(wide: Object, narrow: Object) -> bool:
    """Return whether the toleration `wide` tolerates every taint that `narrow` tolerates."""
    exists = wide.get("operator") == "Exists"
    if narrow == wide:
        return True
    if narrow.get("key") != wide.get("key") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and narrow.get("effect") != wide["effect"]:
        return False
    wide_seconds, narrow_seconds = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    is_longer = wide_seconds is not None and (narrow_seconds is None or narrow_seconds > wide_seconds)
    if wide.get("effect") == "NoExecute" and is_longer:
        return False
    return exists or (narrow.get("operator") == "Equal" and narrow.get("value") == wide.get("value"))


def _set_storage_class(claim: Object, list_objects: ListObjects) -> Object:
    if (claim.get("spec") or {}).get("storageClassName") is not None or _STORAGE_ANNOTATION in _get_annotations(claim):
        return claim
    name = _find_default(list_objects("storage.k8s.io", "storageclasses"), _DEFAULT_STORAGE)
    return _set_in_spec(claim, storageClassName=name) if name else claim


def _set_ingress_class(ingress: Object, list_objects: ListObjects) -> Object:
    if (ingress.get("spec") or {}).get("ingressClassName") is not None or _INGRESS_ANNOTATION in _get_annotations(
        ingress
    ):
        return ingress
    name = _find_default(list_objects("networking.k8s.io", "ingressclasses"), _DEFAULT_INGRESS)
    return _set_in_spec(ingress, ingressClassName=name) if name else ingress


def _get_annotations(obj: Object) -> Object:
    return obj["metadata"].get("annotations") or {}


def _find_default(classes: Iterable[Object], annotations: tuple[str, ...]) -> str:
    """Return the name of the newest class with a default-class annotation, or "" if no class has one."""
    defaults = [item for item in classes if any(_get_annotations(item).get(key) == "true" for key in annotations)]
    defaults.sort(key=_get_name)
    defaults.sort(key=lambda item: item["metadata"]["creationTimestamp"], reverse=True)
    return _get_name(defaults[0]) if defaults else ""
