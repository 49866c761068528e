"""Validation of the volumeMounts and volumeDevices of a container."""

from typing import Final

from fairlead.server.registry.validation.formats import relative_path
from fairlead.server.registry.validation.rules import EMPTY, Errors, Not, Object, Scope, apply, field, first_error, when

_UNIQUE: Final = "must be unique"
_SUB_PATH: Final = field("subPath").optional(relative_path)
_OPTIONS: Final = (
    field("subPathExpr").optional(relative_path),
    field("mountPropagation").enum("Bidirectional", "HostToContainer", "None"),
    when(
        {"mountPropagation": "Bidirectional"},
        field("mountPropagation").forbidden_if(
            lambda mount: not mount.parent.get("securityContext.privileged"),
            "Bidirectional mount propagation is available only to privileged containers",
        ),
    ),
    first_error(
        field("recursiveReadOnly").enum("Disabled", "Enabled", "IfPossible"),
        when(
            {"recursiveReadOnly": Not([None, "Disabled"])},
            field("recursiveReadOnly")
            .forbidden_if({"readOnly": EMPTY}, "may only be specified when readOnly is true")
            .forbidden_if(
                {"mountPropagation": Not([None, "None"])},
                "may only be specified when mountPropagation is None or not specified",
            ),
        ),
    ),
)


def check_volume_mounts(container: Scope, volumes: dict[str, Object]) -> Errors:
    """Check the volumeMounts of a container. `volumes` are the valid volumes of its Pod, by name."""
    devices = {item.get("name") or "": item.get("devicePath") or "" for item in container.items("volumeDevices")}
    paths: set[str] = set()
    for mount in container.each("volumeMounts"):
        name, path = mount.text("name"), mount.text("mountPath")
        if not name:
            yield mount.required("name")
        if name not in volumes:
            yield mount.not_found("name")
        if not path:
            yield mount.required("mountPath")
        if path in paths:
            yield mount.invalid("mountPath", _UNIQUE, path)
        paths.add(path)
        if name in devices:
            yield mount.invalid("name", "must not already exist in volumeDevices", name)
        if path in devices.values():
            yield mount.invalid("mountPath", "must not already exist as a path in volumeDevices", path)
        all_mounts = Scope(mount.value, None, container, "volumeMounts")  # a real server does not name the one mount
        yield from _SUB_PATH(all_mounts)
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield mount.invalid("subPathExpr", "subPathExpr and subPath are mutually exclusive")
        yield from apply(_OPTIONS, all_mounts)


def check_volume_devices(container: Scope, volumes: dict[str, Object]) -> Errors:
    """Check the volumeDevices of a container. `volumes` are the valid volumes of its Pod, by name."""
    mounts = {item.get("name") or "": item.get("mountPath") or "" for item in container.items("volumeMounts")}
    names: set[str] = set()
    paths: set[str] = set()
    for device in container.each("volumeDevices"):
        name, path = device.text("name"), device.text("devicePath")
        volume = volumes.get(name)
        if not name:
            yield device.required("name")
        if name in names:
            yield device.invalid("name", _UNIQUE)
        if volume is None:
            yield device.not_found("name")
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            message = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield device.invalid("name", message, name)
        if not path:
            yield device.required("devicePath")
        if path in paths:
            yield device.invalid("devicePath", _UNIQUE, path)
        if ".." in path.split("/"):
            yield device.invalid("devicePath", "can not contain backsteps ('..')")
        else:
            paths.add(path)
        if name in mounts:
            yield device.invalid("name", "must not already exist in volumeMounts", name)
        if path in mounts.values():
            yield device.invalid("devicePath", "must not already exist as a path in volumeMounts", path)
        names |= {name} if name else set()
