"""Object metadata: what the server fills in, what it keeps from the live object, and what it refuses."""

import json
from typing import Any

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError, quote_go
from fairlead.server.registry.resource import Resource
from fairlead.server.write import names

Object = dict[str, Any]
Metadata = dict[str, Any]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
STANDARD_FINALIZERS = frozenset(("kubernetes", ORPHAN, FOREGROUND))
# Groups whose kinds take any qualified name for a finalizer, as custom resources do.
_ANY_FINALIZER = frozenset(
    (
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "policy",
    )
)
ANNOTATIONS_LIMIT = 256 * 1024
IMMUTABLE = "field is immutable"


def name_rule(resource: Resource) -> Any:
    """How names of this kind are checked."""
    if not resource.group and resource.plural in ("namespaces", "services"):
        return names.label
    if resource.group == "rbac.authorization.k8s.io" or resource.plural in ("poddisruptionbudgets", "events"):
        return names.path_segment
    return names.subdomain


def validate(metadata: Metadata, resource: Resource, *, generic: bool = False) -> list[FieldError]:
    """What is wrong with an object's metadata. `generic` is the check that every kind gets: names fit in a path."""
    rule = names.path_segment if generic else name_rule(resource)
    found = general(metadata, rule, namespaced=resource.namespaced)
    if not generic:
        found += standard_finalizers(metadata, resource)
    return found


def general(metadata: Metadata, rule: Any, *, namespaced: bool, path: str = "metadata") -> list[FieldError]:
    """What is wrong with metadata of any kind whose names are checked by this rule."""
    found: list[FieldError] = []
    prefix = metadata.get("generateName") or ""
    if prefix:
        found += [field_errors.invalid(f"{path}.generateName", prefix, m) for m in rule(prefix, True)]
    name = metadata.get("name") or ""
    if not name:
        found.append(field_errors.required(f"{path}.name", "name or generateName is required"))
    else:
        found += [field_errors.invalid(f"{path}.name", name, m) for m in rule(name)]
    namespace = metadata.get("namespace") or ""
    if namespaced:
        if not namespace:
            found.append(field_errors.required(f"{path}.namespace"))
        else:
            found += [field_errors.invalid(f"{path}.namespace", namespace, m) for m in names.label(namespace)]
    elif namespace:
        found.append(field_errors.forbidden(f"{path}.namespace", "not allowed on this type"))
    generation = metadata.get("generation") or 0
    if generation < 0:
        found.append(field_errors.invalid(f"{path}.generation", generation, "must be greater than or equal to 0"))
    found += labels_and_annotations(metadata, path)
    found += _owner_references(metadata, path)
    found += _finalizers(metadata, path)
    found += _managed_fields(metadata, path)
    return found


def validate_update(new: Metadata, old: Metadata) -> list[FieldError]:
    """What is wrong with a change of metadata."""
    found: list[FieldError] = []
    if old.get("deletionTimestamp"):
        extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            shown = "[]string{" + ", ".join(quote_go(f) for f in extra) + "}"
            found.append(
                field_errors.forbidden(
                    "metadata.finalizers",
                    f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}",
                )
            )
    if not new.get("resourceVersion"):
        found.append(field_errors.invalid("metadata.resourceVersion", "", "must be specified for an update"))
    for key in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = new.get(key)
        if value != old.get(key) and not (value in ("", None) and old.get(key) in ("", None)):
            found.append(field_errors.invalid(f"metadata.{key}", _empty(key) if value is None else value, IMMUTABLE))
    found += labels_and_annotations(new, "metadata")
    found += _owner_references(new, "metadata")
    found += _managed_fields(new, "metadata")
    return found


def _empty(key: str) -> str | None:
    return "" if key in ("name", "namespace", "uid") else None


def labels_and_annotations(metadata: Metadata, path: str) -> list[FieldError]:
    """What is wrong with those of an object, or of the template of one."""
    found: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        found += [field_errors.invalid(f"{path}.labels", key, m) for m in names.qualified(key)]
        found += [field_errors.invalid(f"{path}.labels", value, m) for m in names.label_value(value)]
    size = 0
    for key, value in (metadata.get("annotations") or {}).items():
        # Annotation keys are checked in lower case: upper case is an old permission.
        found += [field_errors.invalid(f"{path}.annotations", key, m) for m in names.qualified(key.lower())]
        size += len(key.encode()) + len(value.encode())
    return (
        found
        if size <= ANNOTATIONS_LIMIT
        else [*found, field_errors.too_long(f"{path}.annotations", ANNOTATIONS_LIMIT)]
    )


def _owner_references(metadata: Metadata, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    field = f"{path}.ownerReferences"
    references = metadata.get("ownerReferences") or []
    controller = ""
    for reference in references:
        given = reference.get("apiVersion") or ""
        group, _, version = given.rpartition("/") if given.count("/") < 2 else ("", "", "")
        kind, name = reference.get("kind") or "", reference.get("name") or ""
        if not version:
            found.append(field_errors.invalid(f"{field}.apiVersion", given, "version must not be empty"))
        if not kind:
            found.append(field_errors.invalid(f"{field}.kind", "", "must not be empty"))
        if not name:
            found.append(field_errors.invalid(f"{field}.name", "", "must not be empty"))
        if not reference.get("uid"):
            found.append(field_errors.invalid(f"{field}.uid", "", "must not be empty"))
        if (group, version, kind) == ("", "v1", "Event"):
            message = "/v1, Kind=Event is disallowed from being an owner"
            found.append(_invalid_reference(field, _reference(reference), message))
        if reference.get("controller"):
            current = f"{kind}/{name}"
            if controller:
                message = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {current}"
                )
                found.append(_invalid_reference(field, [_reference(r) for r in references], message))
            else:
                controller = current
    return found


def _reference(reference: dict[str, Any]) -> dict[str, Any]:
    """An owner reference in the order its type declares."""
    shown = {key: reference.get(key, "") for key in ("apiVersion", "kind", "name", "uid")}
    return shown | {key: reference[key] for key in ("controller", "blockOwnerDeletion") if key in reference}


def _invalid_reference(field: str, shown: Any, message: str) -> FieldError:
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return FieldError("FieldValueInvalid", field, f"Invalid value: {text}: {message}")


def _finalizers(metadata: Metadata, path: str) -> list[FieldError]:
    field = f"{path}.finalizers"
    finalizers = metadata.get("finalizers") or []
    found = [field_errors.invalid(field, f, m) for f in finalizers for m in names.qualified(f)]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        message = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        found.append(field_errors.invalid(field, finalizers, message))
    return found


def _managed_fields(metadata: Metadata, path: str) -> list[FieldError]:
    """What else is wrong with entries was unreadable and did not get this far."""
    found: list[FieldError] = []
    for index, entry in enumerate(metadata.get("managedFields") or ()):
        manager, subresource = entry.get("manager") or "", entry.get("subresource") or ""
        if len(manager) > 32 or not manager.isprintable():
            found += field_errors.validate_manager_name(f"{path}.managedFields[{index}].manager", manager)
        if len(subresource) > 256:
            found.append(field_errors.too_long(f"{path}.managedFields[{index}].subresource", 256))
    return found


def standard_finalizers(metadata: Metadata, resource: Resource) -> list[FieldError]:
    """Finalizers of most built-in kinds name their domain, or are among the few that Kubernetes itself knows."""
    found: list[FieldError] = []
    if resource.custom or resource.group in _ANY_FINALIZER:
        return found
    for index, finalizer in enumerate(metadata.get("finalizers") or []):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            found.append(
                field_errors.invalid(
                    f"metadata.finalizers[{index}]",
                    finalizer,
                    "name is neither a standard finalizer name nor is it fully qualified",
                )
            )
    return found


_SYSTEM = frozenset(("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"))


def wiped(obj: Object) -> Object:
    """An object to be created without the metadata that only the server sets."""
    given = obj.get("metadata") or {}
    if _SYSTEM.isdisjoint(given):
        return obj
    return {**obj, "metadata": {k: v for k, v in given.items() if k not in _SYSTEM}}


def for_create(obj: Object, *, namespace: str, uid: str, now: str) -> Object:
    """A new object with the system's own metadata; what a client may not set is dropped."""
    given = obj.get("metadata") or {}
    dropped = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
    metadata = {k: v for k, v in given.items() if v is not None and k not in dropped}
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    return {**obj, "metadata": metadata}


def for_update(obj: Object, old: Object) -> Object:
    """A changed object with what an update can never change taken from the live one."""
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if v is not None and k != "selfLink"}
    live = old["metadata"]
    if not metadata.get("uid"):
        metadata["uid"] = live["uid"]
    metadata["creationTimestamp"] = live["creationTimestamp"]
    if "deletionTimestamp" in live:
        metadata["deletionTimestamp"] = live["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in live and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = live["deletionGracePeriodSeconds"]
    if "generation" in live:
        metadata["generation"] = live["generation"]
    else:
        metadata.pop("generation", None)
    return {**obj, "metadata": metadata}


def without_duplicate_owners(obj: Object) -> tuple[Object, list[str]]:
    """The object with each owner reference once, and the uids of the others, each as often as it stood there again."""
    references = obj.get("metadata", {}).get("ownerReferences")
    if not references or len(references) < 2:
        return obj, []
    kept: list[dict[str, Any]] = []
    repeated: list[str] = []
    for reference in references:
        if reference in kept:
            repeated.append(reference.get("uid", ""))
        else:
            kept.append(reference)
    if not repeated:
        return obj, []
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}, repeated
