"""Validation of references from containers and volumes to Pod fields and to keys of ConfigMaps, Secrets and files."""

import re
from typing import Final

from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.formats import (
    config_key,
    dns_label,
    dns_subdomain,
    path_without_parents,
    qualified_name,
    variable_name,
)
from fairlead.server.registry.validation.rules import Errors, Rule, Scope, field
from fairlead.server.schema import quantity

IN_CONTAINERS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
IN_VOLUMES: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN: Final = {*IN_CONTAINERS, *IN_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
_SUBSCRIPT: Final = re.compile(r"(?s)(.*)\['(.*)'\]")
_RESOURCES: Final = tuple(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_UNITS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_RESOURCE_NAMES: Final = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}


def check_pod_field(allowed: tuple[str, ...]) -> Rule:
    """Return a rule for a fieldRef. `allowed` are the fields that it may name without a subscript."""

    def rule(ref: Scope) -> Errors:
        name = ref.text("fieldPath")
        if not name:
            yield ref.required("fieldPath")
        elif ref.get("apiVersion") != "v1":
            yield _build_unknown_field_error(ref, name, f"unsupported pod version: {ref.text('apiVersion')}")
        elif subscript := _SUBSCRIPT.fullmatch(name):
            field_path, key = subscript.groups()
            if field_path not in ("metadata.annotations", "metadata.labels"):
                yield _build_unknown_field_error(ref, name, f"field label does not support subscript: {name}")
            else:
                yield from ref.check("", qualified_name, key.lower() if field_path == "metadata.annotations" else key)
        else:
            name = "spec.nodeName" if name == "spec.host" else name
            if name not in _KNOWN:
                yield _build_unknown_field_error(ref, name, f"field label not supported: {name}")
            elif name not in allowed:
                yield ref.not_supported("fieldPath", allowed, name)

    return rule


def _build_unknown_field_error(ref: Scope, name: str, message: str) -> FieldError:
    return ref.invalid("fieldPath", f"error converting fieldPath: {message}", name)


def check_container_resource(*, is_by_name: bool) -> Rule:
    """Return a rule for a resourceFieldRef. `is_by_name`: the reference must name a container."""

    def rule(ref: Scope) -> Errors:
        name, divisor = ref.text("resource"), ref.get("divisor") or "0"
        is_huge_pages = name.startswith(("requests.hugepages-", "limits.hugepages-"))
        if is_by_name and not ref.get("containerName"):
            yield ref.required("containerName")
        elif not name:
            yield ref.required("resource")
        elif name not in _RESOURCES and not is_huge_pages:
            yield ref.not_supported("resource", _RESOURCES)
        if not quantity.parse(divisor)[0]:
            return
        kind = name.partition(".")[2]
        if kind == "cpu" and divisor not in ("1", "1m"):
            yield ref.invalid("divisor", "only divisor's values 1m and 1 are supported with the cpu resource", name)
        if (kind in _RESOURCE_NAMES or is_huge_pages) and divisor not in _UNITS:
            resource_label = "hugepages" if is_huge_pages else _RESOURCE_NAMES[kind]
            message = f"only divisor's values {', '.join(_UNITS)} are supported with the {resource_label} resource"
            yield ref.invalid("divisor", message, name)

    return rule


# configMapKeyRef and secretKeyRef, and fileKeyRef
CONFIG_KEY: Final = (field("name").check(dns_subdomain, zero=""), field("key").required(config_key))
FILE_KEY: Final = (
    field("key").required(variable_name),
    field("volumeName").required(dns_label),
    field("path").required(path_without_parents),
)
