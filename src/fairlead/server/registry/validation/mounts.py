"""Volumes inside a container: mounted, or as devices."""

from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.paths import below
from fairlead.server.registry.validation.vocabulary import Object

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY: Final = ("Disabled", "Enabled", "IfPossible")
_ONCE: Final = "must be unique"


def not_found(field: str, name: str) -> FieldError:
    return FieldError("FieldValueNotFound", field, f"Not found: {field_errors.quote_go(name)}")


def mounts(container: Object, path: str, volumes: dict[str, Object]) -> list[FieldError]:
    found: list[FieldError] = []
    devices = {one.get("name") or "": one.get("devicePath") or "" for one in container.get("volumeDevices") or ()}
    taken: set[str] = set()
    for index, one in enumerate(container.get("volumeMounts") or ()):
        here, name, place = f"{path}.volumeMounts[{index}]", one.get("name") or "", one.get("mountPath") or ""
        found += [] if name else [field_errors.required(f"{here}.name")]
        found += [] if name in volumes else [not_found(f"{here}.name", name)]
        found += [] if place else [field_errors.required(f"{here}.mountPath")]
        if place in taken:
            found.append(field_errors.invalid(f"{here}.mountPath", place, _ONCE))
        taken.add(place)
        if name in devices:
            found.append(field_errors.invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if place in devices.values():
            told = "must not already exist as a path in volumeDevices"
            found.append(field_errors.invalid(f"{here}.mountPath", place, told))
        found += _parts(one, here, f"{path}.volumeMounts", container)
    return found


def _parts(one: Object, here: str, path: str, container: Object) -> list[FieldError]:
    """A part of a volume, and how it is mounted: told of all mounts, not of the one."""
    part, computed = one.get("subPath"), one.get("subPathExpr")
    found = below(f"{path}.subPath", part) if part else []
    if computed:
        if part:
            told = "subPathExpr and subPath are mutually exclusive"
            found.append(field_errors.invalid(f"{here}.subPathExpr", computed, told))
        found += below(f"{path}.subPathExpr", computed)
    spread, field = one.get("mountPropagation"), f"{path}.mountPropagation"
    if spread is not None and spread not in _PROPAGATIONS:
        found.append(field_errors.not_supported(field, spread, _PROPAGATIONS))
    if spread == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        told = "Bidirectional mount propagation is available only to privileged containers"
        found.append(field_errors.forbidden(field, told))
    return found + _read_only(one, f"{path}.recursiveReadOnly")


def _read_only(one: Object, field: str) -> list[FieldError]:
    given = one.get("recursiveReadOnly")
    if given in (None, "Disabled"):
        return []
    if given not in _READ_ONLY:
        return [field_errors.not_supported(field, given, _READ_ONLY)]
    found = []
    if not one.get("readOnly"):
        found.append(field_errors.forbidden(field, "may only be specified when readOnly is true"))
    if one.get("mountPropagation") not in (None, "None"):
        told = "may only be specified when mountPropagation is None or not specified"
        found.append(field_errors.forbidden(field, told))
    return found


def devices(container: Object, path: str, volumes: dict[str, Object]) -> list[FieldError]:
    found: list[FieldError] = []
    mounted = {one.get("name") or "": one.get("mountPath") or "" for one in container.get("volumeMounts") or ()}
    names: set[str] = set()
    places: set[str] = set()
    for index, one in enumerate(container.get("volumeDevices") or ()):
        here, name, place = f"{path}.volumeDevices[{index}]", one.get("name") or "", one.get("devicePath") or ""
        named, placed, volume = f"{here}.name", f"{here}.devicePath", volumes.get(name)
        found += [] if name else [field_errors.required(named)]
        if name in names:
            found.append(field_errors.invalid(named, name, _ONCE))
        if volume is None:
            found.append(not_found(named, name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            told = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            found.append(field_errors.invalid(named, name, told))
        found += [] if place else [field_errors.required(placed)]
        if place in places:
            found.append(field_errors.invalid(placed, place, _ONCE))
        if ".." in place.split("/"):
            found.append(field_errors.invalid(placed, place, "can not contain backsteps ('..')"))
        else:
            places.add(place)
        if name in mounted:
            found.append(field_errors.invalid(named, name, "must not already exist in volumeMounts"))
        if place in mounted.values():
            found.append(field_errors.invalid(placed, place, "must not already exist as a path in volumeMounts"))
        names |= {name} if name else set()
    return found
