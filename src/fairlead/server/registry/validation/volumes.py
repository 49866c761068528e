"""The volumes of a Pod: each has one source, and each source its rules."""

import re
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.paths import absolute, below, file_below, mode, without_backsteps
from fairlead.server.registry.validation.references import OF_VOLUMES, field_of_pod, resource_of_container
from fairlead.server.registry.validation.rules import Rule, choice, each, inside, needed, value
from fairlead.server.registry.validation.storage import claim_spec
from fairlead.server.registry.validation.vocabulary import Object, label
from fairlead.server.schema import quantity
from fairlead.server.write import names
from fairlead.server.write.metadata import validate_labels_and_annotations

_HOST_PATHS: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_PULLS: Final = ("Always", "IfNotPresent", "Never")
_TWICE: Final = "may not specify more than 1 volume type"
_ISCSI: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
_MANAGED: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_TEN_MINUTES: Final = 600


def volumes(spec: Object, path: str, *, of_pod: bool) -> tuple[list[FieldError], dict[str, Object]]:
    """What is wrong with the volumes, and those that may be mounted: nothing mounts what is not sound."""
    found: list[FieldError] = []
    sound: dict[str, Object] = {}
    for index, volume in enumerate(spec.get("volumes") or ()):
        here, name = f"{path}.volumes[{index}]", volume.get("name") or ""
        wrong = _source(volume, here, of_pod=of_pod)
        wrong += label(f"{here}.name", name) if name else [field_errors.required(f"{here}.name")]
        if name in sound:
            wrong.append(field_errors.duplicate(f"{here}.name", name))
        if not wrong:
            sound[name] = volume
        found += wrong
    return found, sound


def _source(volume: Object, path: str, *, of_pod: bool) -> list[FieldError]:
    sources = sorted((key for key in volume if key != "name"), key=lambda key: _ORDER.get(key, len(_ORDER)))
    if not sources:
        return [field_errors.required(path, "must specify a volume type")]
    first, *others = sources
    found = [
        c
        for rule in SOURCES.get(first, ())
        for c in rule(volume[first] or {}, None, f"{path}.{NAMED.get(first, first)}")
    ]
    if first == "image" and of_pod:
        found = needed("reference")(volume[first] or {}, None, f"{path}.image") + found
    return found + [field_errors.forbidden(f"{path}.{_CALLED.get(key, key)}", _TWICE) for key in others]


def _sized(field: str, amount: str) -> list[FieldError]:
    negative = quantity.parse(amount)[0] < 0
    return [field_errors.forbidden(field, "SizeLimit field must be a valid resource quantity")] if negative else []


def _host(given: Object, old: Object | None, path: str) -> list[FieldError]:
    if not given.get("path"):
        return [field_errors.required(f"{path}.path")]
    return without_backsteps(f"{path}.path", given["path"]) + choice("type", _HOST_PATHS)(given, None, path)


def _served(given: Object, old: Object | None, path: str) -> list[FieldError]:
    return needed("server", "path")(given, None, path) + absolute(f"{path}.path", given.get("path") or "")


def _numbered(key: str, told: str) -> Rule:
    """A number of a partition or unit."""
    return value(key, lambda field, n: [] if 0 <= n <= 255 else [field_errors.invalid(field, n, told)])


_UNIT: Final = "must be between 0 and 255, inclusive"
_PARTITION: Final = _numbered("partition", "must be between 1 and 255, inclusive")


def _qualified(field: str, name: str) -> list[FieldError]:
    """A name by which storage is found over iSCSI."""
    if name[:3] not in _ISCSI:
        return [field_errors.invalid(field, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if _ISCSI[name[:3]].search(name) else [field_errors.invalid(field, name, "must be valid format")]


def _initiated(given: Object, old: Object | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if (given.get("chapAuthDiscovery") or given.get("chapAuthSession")) and given.get("secretRef") is None:
        found.append(field_errors.required(f"{path}.secretRef"))
    name = given.get("initiatorName")
    return found if name is None else found + _qualified(f"{path}.initiatorname", name)


def _fibre(given: Object, old: Object | None, path: str) -> list[FieldError]:
    targets, wide, unit, field = given.get("targetWWNs"), given.get("wwids"), given.get("lun"), f"{path}.targetWWNs"
    if not targets:
        return [] if wide else [field_errors.required(field, "must specify either targetWWNs or wwids, but not both")]
    found = []
    if wide:
        found.append(field_errors.invalid(field, targets, "targetWWNs and wwids can not be specified simultaneously"))
    if unit is None:
        return [*found, field_errors.required(f"{path}.lun", "lun is required if targetWWNs is specified")]
    return found + _numbered("lun", _UNIT)(given, None, path)


def _azure(given: Object, old: Object | None, path: str) -> list[FieldError]:
    found = needed("diskName", "diskURI")(given, None, path)
    found += choice("cachingMode", ("None", "ReadOnly", "ReadWrite"))(given, None, path)
    found += choice("kind", ("Dedicated", "Managed", "Shared"))(given, None, path)
    start, told = ("/subscriptions/", _MANAGED) if given.get("kind") == "Managed" else ("https://", _BLOB)
    place = given.get("diskURI") or ""
    return found if place.startswith(start) else [*found, field_errors.not_supported(f"{path}.diskURI", place, (told,))]


def _reserved(field: str, options: Object) -> list[FieldError]:
    told = "kubernetes.io and k8s.io namespaces are reserved"
    owners = {key: f".{key.partition('/')[0].lower()}" for key in options}
    taken = [key for key, owner in owners.items() if owner.endswith((".kubernetes.io", ".k8s.io"))]
    return [field_errors.invalid(f"{field}[{key}]", key, told) for key in taken]


def driver_name(field: str, name: str) -> list[FieldError]:
    """The name of a CSI driver."""
    if not name:
        return [field_errors.required(field)]
    found = [field_errors.too_long(field, 63)] if len(name) > 63 else []
    return found + [field_errors.invalid(field, name, told) for told in names.subdomain(name.lower())]


def _driven(given: Object, old: Object | None, path: str) -> list[FieldError]:
    found = driver_name(f"{path}.driver", given.get("driver") or "")
    secret = given.get("nodePublishSecretRef")
    if secret is None:
        return found
    name = secret.get("name") or ""
    if not name:
        return [*found, field_errors.required(f"{path}.nodePublishSecretRef.name")]
    return found + [field_errors.invalid(f"{path}.name", name, told) for told in names.subdomain(name)]


def _claimed(given: Object, old: Object | None, path: str) -> list[FieldError]:
    template, field = given.get("volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        return [field_errors.required(field)]
    named = validate_labels_and_annotations(template.get("metadata") or {}, f"{field}.metadata")
    return named + claim_spec(template, None, field)


def _file(given: Object, path: str) -> list[FieldError]:
    """A file that says something of the Pod."""
    name, fields, resource = given.get("path") or "", given.get("fieldRef"), given.get("resourceFieldRef")
    found = [] if name else [field_errors.required(f"{path}.path")]
    found += file_below(f"{path}.path", name)
    if fields is not None:
        found += field_of_pod(fields, f"{path}.fieldRef", OF_VOLUMES)
        if resource is not None:
            told = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(field_errors.invalid(path, "resource", told))
    elif resource is not None:
        found += resource_of_container(resource, f"{path}.resourceFieldRef", by_name=True)
    else:
        found.append(field_errors.required(path, "one of fieldRef and resourceFieldRef is required"))
    return found + value("mode", mode)(given, None, path)


def _files(given: Object, old: Object | None, path: str) -> list[FieldError]:
    return [cause for one in given.get("items") or () for cause in _file(one, path)]


def _keyed(given: Object, old: Object | None, path: str) -> list[FieldError]:
    """A key that becomes a file."""
    found = needed("key", "path")(given, None, path) + file_below(f"{path}.path", given.get("path") or "")
    return found + value("mode", mode)(given, None, path)


def _lasting(field: str, seconds: int) -> list[FieldError]:
    if seconds < _TEN_MINUTES:
        return [field_errors.invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    told = "may not specify a duration larger than 2^32 seconds"
    return [field_errors.invalid(field, seconds, told)] if seconds > 1 << 32 else []


def _projected(given: Object, old: Object | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    taken: set[str] = set()
    for index, source in enumerate(given.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        for key in ("secret", "configMap"):
            found += inside(key, needed("name"))(source, None, here)
            for at, item in enumerate((source.get(key) or {}).get("items") or ()):
                found += _keyed(item, None, f"{here}.{key}.items[{at}]")
                found += _taken(item, taken, path, (source[key].get("name") or ""))
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            found += _file(item, f"{here}.downwardAPI")
            found += _taken(item, taken, path, item.get("path") or "")
        token = source.get("serviceAccountToken")
        if token is not None:
            found += value("expirationSeconds", _lasting)(token, None, f"{here}.serviceAccountToken")
            name = token.get("path") or ""
            found += file_below(f"{path}.path", name) if name else [field_errors.required(f"{path}.path")]
        if len([key for key in source if source[key] is not None]) > 1:
            found.append(field_errors.forbidden(here, "may not specify more than 1 volume type per source"))
    return found


def _taken(item: Object, taken: set[str], path: str, shown: str) -> list[FieldError]:
    name = item.get("path") or ""
    again = bool(name) and name in taken
    taken.add(name)
    return [field_errors.invalid(path, shown, "conflicting duplicate paths")] if again else []


_MODE: Final = value("defaultMode", mode)
_ITEMS: Final = each("items", _keyed)
SOURCES: Final[dict[str, tuple[Rule, ...]]] = {  # in the order in which a real server looks for them
    "emptyDir": (value("sizeLimit", _sized),),
    "hostPath": (_host,),
    "gitRepo": (needed("repository"), value("directory", below)),
    "gcePersistentDisk": (needed("pdName"), _PARTITION),
    "awsElasticBlockStore": (needed("volumeID"), _PARTITION),
    "secret": (needed("secretName"), _MODE, _ITEMS),
    "nfs": (_served,),
    "iscsi": (
        needed("targetPortal", "iqn"),
        value("iqn", lambda field, name: _qualified(field, name) if name else []),
        _numbered("lun", _UNIT),
        _initiated,
    ),
    "glusterfs": (needed("endpoints", "path"),),
    "flocker": (),
    "persistentVolumeClaim": (needed("claimName"),),
    "rbd": (needed("monitors", "image"),),
    "cinder": (needed("volumeID"), inside("secretRef", needed("name"))),
    "cephfs": (needed("monitors"),),
    "quobyte": (),
    "downwardAPI": (_MODE, _files),
    "fc": (_fibre,),
    "flexVolume": (needed("driver"), value("options", _reserved)),
    "configMap": (needed("name"), _MODE, _ITEMS),
    "azureFile": (needed("secretName", "shareName"),),
    "vsphereVolume": (needed("volumePath"),),
    "photonPersistentDisk": (needed("pdID"),),
    "portworxVolume": (needed("volumeID"),),
    "azureDisk": (_azure,),
    "storageos": (),
    "projected": (_MODE, _projected),
    "scaleIO": (needed("gateway", "system", "volumeName"),),
    "csi": (_driven,),
    "ephemeral": (_claimed,),
    "image": (choice("pullPolicy", _PULLS),),
}
_ORDER: Final = {key: at for at, key in enumerate(SOURCES)}
NAMED: Final = {"gcePersistentDisk": "persistentDisk"}  # what a real server calls a source inside
_CALLED: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}  # and one too many
