"""Validation of the volumes of a Pod: each volume has one source, and each type of source has its rules."""

import re
from collections.abc import Iterable
from typing import Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.formats import (
    absolute_path,
    dns_label,
    dns_subdomain,
    file_mode,
    path_without_parents,
    relative_path,
    volume_file_path,
)
from fairlead.server.registry.validation.references import IN_VOLUMES, check_container_resource, check_pod_field
from fairlead.server.registry.validation.rules import (
    NOT_EMPTY,
    Errors,
    Object,
    Rule,
    Scope,
    apply,
    each,
    field,
    inside,
    when,
)
from fairlead.server.registry.validation.storage import claim_spec
from fairlead.server.schema import quantity
from fairlead.server.schema.metadata_validation import validate_labels_and_annotations

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_ISCSI: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
_MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_TEN_MINUTES: Final = 600


def check_volumes(spec: Scope, *, is_template: bool) -> tuple[list[FieldError], dict[str, Object]]:
    """Return the errors of a Pod's volumes, and the valid volumes by name, because containers can mount only those."""
    errors: list[FieldError] = []
    valid: dict[str, Object] = {}
    for volume in spec.each("volumes"):
        wrong = [*_check_source(volume, is_template=is_template), *_NAME(volume)]
        if volume.text("name") in valid:
            wrong.append(volume.duplicate("name"))
        if not wrong:
            valid[volume.text("name")] = volume.value
        errors += wrong
    return errors, valid


def _check_source(volume: Scope, *, is_template: bool) -> Errors:
    sources = sorted((key for key in volume.value if key != "name"), key=lambda key: _ORDER.get(key, len(_ORDER)))
    if not sources:
        yield volume.required("", "must specify a volume type")
        return
    source = volume.inside(sources[0], NAMES_INSIDE.get(sources[0], ""))
    if sources[0] == "image" and not is_template:
        yield from field("reference").required()(source)
    yield from apply(SOURCES.get(sources[0], ()), source)
    for key in sources[1:]:
        yield volume.forbidden(_NAMES_OF_SECOND.get(key, key), "may not specify more than 1 volume type")


def _check_iscsi_name(name: str) -> Iterable[str]:
    if name[:3] not in _ISCSI:
        return ("must be valid format starting with iqn, eui, or naa",)
    return () if _ISCSI[name[:3]].search(name) else ("must be valid format",)


def _check_iscsi_initiator(source: Scope) -> Errors:
    name = source.get("initiatorName")
    return [] if name is None else source.check("initiatorname", _check_iscsi_name, name)


def _check_fibre_channel(source: Scope) -> Errors:
    if not source.get("targetWWNs"):
        if not source.get("wwids"):
            yield source.required("targetWWNs", "must specify either targetWWNs or wwids, but not both")
        return
    if source.get("wwids"):
        yield source.invalid("targetWWNs", "targetWWNs and wwids can not be specified simultaneously")
    if source.get("lun") is None:
        yield source.required("lun", "lun is required if targetWWNs is specified")
    else:
        yield from _LUN(source)


def _check_azure_disk_uri(source: Scope) -> Errors:
    start, uri_pattern = (
        ("/subscriptions/", _MANAGED_DISK) if source.get("kind") == "Managed" else ("https://", _BLOB_DISK)
    )
    if not source.text("diskURI").startswith(start):
        yield source.not_supported("diskURI", (uri_pattern,))


def _check_flex_options(source: Scope) -> Errors:
    for key in source.map("options"):
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            yield source.invalid(f"options[{key}]", "kubernetes.io and k8s.io namespaces are reserved", key)


CSI_DRIVER: Final = (
    field("driver").required(),
    field("driver").max_length(63),
    field("driver").optional(lambda name: dns_subdomain(name.lower())),
)


def _check_csi_secret(source: Scope) -> Errors:
    name = source.text("nodePublishSecretRef.name")
    if source.get("nodePublishSecretRef") is not None and not name:
        yield source.required("nodePublishSecretRef.name")
    elif name:
        yield from source.check("name", dns_subdomain, name)


def _check_claim_template(source: Scope) -> Errors:
    template = source.inside("volumeClaimTemplate")
    if source.get("volumeClaimTemplate") is None:
        yield template.required()
        return
    yield from validate_labels_and_annotations(template.map("metadata"), template.path("metadata"))
    yield from claim_spec(template)


def _check_one_reference(file: Scope) -> Errors:
    """Require a downwardAPI file to have either a fieldRef or a resourceFieldRef."""
    if file.get("fieldRef") is not None:
        yield from _POD_FIELD(file)
        if file.get("resourceFieldRef") is not None:
            message = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield file.invalid("", message, "resource")
    elif file.get("resourceFieldRef") is not None:
        yield from _CONTAINER_RESOURCE(file)
    else:
        yield file.required("", "one of fieldRef and resourceFieldRef is required")


_POD_FIELD: Final = inside("fieldRef", check_pod_field(IN_VOLUMES))
_CONTAINER_RESOURCE: Final = inside("resourceFieldRef", check_container_resource(is_by_name=True))
_MODE: Final = field("mode").check(file_mode)
_DOWNWARD_FILE: Final = (field("path").required(volume_file_path), _check_one_reference, _MODE)
_KEY_FILE: Final = (field("key").required(), field("path").required(volume_file_path), _MODE)


def _check_downward_files(source: Scope) -> Errors:
    """Check the files of a downwardAPI volume. As on a real server, errors have no item index."""
    return [error for item in source.items("items") for error in apply(_DOWNWARD_FILE, Scope(item, None, source))]


def _check_token_lifetime(seconds: int) -> Iterable[str]:
    if seconds < _TEN_MINUTES:
        return ("may not specify a duration less than 10 minutes",)
    return ("may not specify a duration larger than 2^32 seconds",) if seconds > 1 << 32 else ()


def _check_projected_sources(projected: Scope) -> Errors:
    paths: set[str] = set()

    def check_unique(file: Scope, source_text: str) -> Errors:
        path = file.text("path")
        if path and path in paths:
            yield projected.invalid("", "conflicting duplicate paths", source_text)
        paths.add(path)

    for source in projected.each("sources"):
        for key in ("secret", "configMap"):
            yield from inside(key, field("name").required())(source)
            for file in source.inside(key).each("items"):
                yield from apply(_KEY_FILE, file)
                yield from check_unique(file, source.text(f"{key}.name"))
        for item in source.items("downwardAPI.items"):
            file = Scope(item, None, source, "downwardAPI")
            yield from apply(_DOWNWARD_FILE, file)
            yield from check_unique(file, file.text("path"))
        if source.get("serviceAccountToken") is not None:
            yield from field("serviceAccountToken.expirationSeconds").check(_check_token_lifetime)(source)
            path = source.text("serviceAccountToken.path")
            yield from projected.check("path", volume_file_path, path) if path else [projected.required("path")]
        if len([key for key in source.value if source.value[key] is not None]) > 1:
            yield source.forbidden("", "may not specify more than 1 volume type per source")


_NAME: Final = field("name").required(dns_label)
_DEFAULT_MODE: Final = field("defaultMode").check(file_mode)
_ITEMS: Final = each("items", *_KEY_FILE)
_LUN: Final = field("lun").between(0, 255)
_PARTITION: Final = field("partition").between(0, 255, message="must be between 1 and 255, inclusive")
SOURCES: Final[dict[str, tuple[Rule, ...]]] = {  # in the order in which a real server looks for them
    "emptyDir": (
        field("sizeLimit").forbidden_if(
            lambda source: source.get("sizeLimit") is not None and quantity.parse(source.get("sizeLimit"))[0] < 0,
            "SizeLimit field must be a valid resource quantity",
        ),
    ),
    "hostPath": (
        field("path").required(path_without_parents),
        when({"path": NOT_EMPTY}, field("type").enum(*_HOST_PATH_TYPES)),
    ),
    "gitRepo": (field("repository").required(), field("directory").check(relative_path)),
    "gcePersistentDisk": (field("pdName").required(), _PARTITION),
    "awsElasticBlockStore": (field("volumeID").required(), _PARTITION),
    "secret": (field("secretName").required(), _DEFAULT_MODE, _ITEMS),
    "nfs": (field("server", "path").required(), field("path").check(absolute_path, zero="")),
    "iscsi": (
        field("targetPortal", "iqn").required(),
        field("iqn").optional(_check_iscsi_name),
        _LUN,
        field("secretRef").required_if(
            lambda source: (
                (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None
            )
        ),
        _check_iscsi_initiator,
    ),
    "glusterfs": (field("endpoints", "path").required(),),
    "flocker": (),
    "persistentVolumeClaim": (field("claimName").required(),),
    "rbd": (field("monitors", "image").required(),),
    "cinder": (field("volumeID").required(), inside("secretRef", field("name").required())),
    "cephfs": (field("monitors").required(),),
    "quobyte": (),
    "downwardAPI": (_DEFAULT_MODE, _check_downward_files),
    "fc": (_check_fibre_channel,),
    "flexVolume": (field("driver").required(), _check_flex_options),
    "configMap": (field("name").required(), _DEFAULT_MODE, _ITEMS),
    "azureFile": (field("secretName", "shareName").required(),),
    "vsphereVolume": (field("volumePath").required(),),
    "photonPersistentDisk": (field("pdID").required(),),
    "portworxVolume": (field("volumeID").required(),),
    "azureDisk": (
        field("diskName", "diskURI").required(),
        field("cachingMode").enum("None", "ReadOnly", "ReadWrite"),
        field("kind").enum("Dedicated", "Managed", "Shared"),
        _check_azure_disk_uri,
    ),
    "storageos": (),
    "projected": (_DEFAULT_MODE, _check_projected_sources),
    "scaleIO": (field("gateway", "system", "volumeName").required(),),
    "csi": (*CSI_DRIVER, _check_csi_secret),
    "ephemeral": (_check_claim_template,),
    "image": (field("pullPolicy").enum(*PULL_POLICIES),),
}
_ORDER: Final = {key: index for index, key in enumerate(SOURCES)}
# Some sources have other names in a real server's errors: inside the source, and as a second source of a volume.
NAMES_INSIDE: Final = {"gcePersistentDisk": "persistentDisk"}
_NAMES_OF_SECOND: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
