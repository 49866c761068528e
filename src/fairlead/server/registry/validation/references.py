"""References from containers and volumes to fields of their Pod, and to keys of ConfigMaps and Secrets."""

import re
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.vocabulary import Object, config_key, label, qualified
from fairlead.server.schema import quantity
from fairlead.server.write import names

OF_CONTAINERS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
OF_VOLUMES: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN: Final = {*OF_CONTAINERS, *OF_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
_KEYED: Final = re.compile(r"(?s)(.*)\['(.*)'\]")
_RESOURCES: Final = tuple(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_UNITS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_CALLED: Final = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_PRINTABLE: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def variable_name(field: str, name: str) -> list[FieldError]:
    plain = "=" not in name and all(" " <= letter <= "~" for letter in name)
    return [] if plain else [field_errors.invalid(field, name, _PRINTABLE)]


def field_of_pod(given: Object, path: str, allowed: tuple[str, ...]) -> list[FieldError]:
    """A field of the Pod; `allowed` are those that may be named without a key."""
    name = given.get("fieldPath") or ""
    if not name:
        return [field_errors.required(f"{path}.fieldPath")]
    if given.get("apiVersion") != "v1":
        return [_unknown(path, name, f"unsupported pod version: {given.get('apiVersion') or ''}")]
    if keyed := _KEYED.fullmatch(name):
        whole, key = keyed.groups()
        if whole not in ("metadata.annotations", "metadata.labels"):
            return [_unknown(path, name, f"field label does not support subscript: {name}")]
        return qualified(path, key.lower() if whole == "metadata.annotations" else key)
    name = "spec.nodeName" if name == "spec.host" else name
    if name not in _KNOWN:
        return [_unknown(path, name, f"field label not supported: {name}")]
    return [] if name in allowed else [field_errors.not_supported(f"{path}.fieldPath", name, allowed)]


def _unknown(path: str, name: str, told: str) -> FieldError:
    return field_errors.invalid(f"{path}.fieldPath", name, f"error converting fieldPath: {told}")


def resource_of_container(given: Object, path: str, *, by_name: bool) -> list[FieldError]:
    """What a container asks for or may use; `by_name`: of a container that has to be named."""
    name, divisor = given.get("resource") or "", given.get("divisor") or "0"
    pages = name.startswith(("requests.hugepages-", "limits.hugepages-"))
    found: list[FieldError] = []
    if by_name and not given.get("containerName"):
        found = [field_errors.required(f"{path}.containerName")]
    elif not name:
        found = [field_errors.required(f"{path}.resource")]
    elif name not in _RESOURCES and not pages:
        found = [field_errors.not_supported(f"{path}.resource", name, _RESOURCES)]
    if not quantity.parse(divisor)[0]:
        return found
    kind = name.partition(".")[2]
    if kind == "cpu" and divisor not in ("1", "1m"):
        told = "only divisor's values 1m and 1 are supported with the cpu resource"
        return [*found, field_errors.invalid(f"{path}.divisor", name, told)]
    if (kind in ("memory", "ephemeral-storage") or pages) and divisor not in _UNITS:
        called = "hugepages" if pages else _CALLED[kind]
        told = f"only divisor's values {', '.join(_UNITS)} are supported with the {called} resource"
        return [*found, field_errors.invalid(f"{path}.divisor", name, told)]
    return found


def key_of(given: Object, path: str) -> list[FieldError]:
    """A key of a ConfigMap or Secret."""
    name, key = given.get("name") or "", given.get("key") or ""
    found = [field_errors.invalid(f"{path}.name", name, told) for told in names.subdomain(name)]
    return found + (config_key(f"{path}.key", key) if key else [field_errors.required(f"{path}.key")])


def file_key(given: Object, path: str) -> list[FieldError]:
    """A variable in a file of a volume."""
    key, volume, where = (given.get(part) or "" for part in ("key", "volumeName", "path"))
    found = variable_name(f"{path}.key", key) if key else [field_errors.required(f"{path}.key")]
    found += label(f"{path}.volumeName", volume) if volume else [field_errors.required(f"{path}.volumeName")]
    if not where:
        return [*found, field_errors.required(f"{path}.path")]
    return found + (
        [field_errors.invalid(f"{path}.path", where, "must not contain '..'")] if ".." in where.split("/") else []
    )
