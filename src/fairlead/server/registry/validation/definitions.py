"""Validation of CustomResourceDefinitions: names, versions, schemas and immutable fields."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from fairlead.api.gojson import quote_go
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.formats import dns_1035_label, dns_subdomain
from fairlead.server.registry.validation.rules import (
    NOT_EMPTY,
    Errors,
    Object,
    Scope,
    apply,
    each,
    field,
    first_error,
    go_struct,
    inside,
    lookup,
)
from fairlead.server.registry.validation.selectable_fields import check_selectable_fields
from fairlead.server.registry.validation.webhooks import check_url_or_service
from fairlead.server.schema import formats
from fairlead.server.schema.crd_schema.validation import validate_crd_schema

_APPROVED: Final = "api-approved.kubernetes.io"
_APPROVAL_LINK: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_SCHEMA: Final = "schema.openAPIV3Schema"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_NAMES: Final = ("plural", "singular", "kind", "listKind")
_STORED: Final = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
)
_ROOT_KEYWORDS: Final = (  # the keywords that the root of a schema may use if the status is a subresource
    "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties",
    "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
)  # fmt: skip


def validate_definition(new: Object, old: Object | None) -> list[FieldError]:
    scope = Scope(new, old)
    errors = apply(_DEFINITION, scope)
    if old is not None:
        established = [c for c in lookup(old, "status.conditions") or () if c["type"] == "Established"]
        is_established = bool(established) and established[0]["status"] == "True"
        changes = apply((*(_IMMUTABLE_IF_ESTABLISHED if is_established else ()), _IMMUTABLE), scope)
        if changes:  # the name follows from these fields, and a real server does not report it too
            errors = [error for error in errors if error.field != "metadata.name"]
        errors += changes
    return errors + apply((_check_stored_versions, _check_approval), scope)


def validate_status(new: Object, old: Object | None) -> list[FieldError]:
    """Return no errors. A real server does not validate `status.storedVersions` when a client writes the status."""
    return []


def find_warnings(new: Object, old: Object | None) -> list[str]:
    """Return a warning for each schema `format` that the server does not know and therefore ignores."""
    texts: dict[str, None] = {}
    for version in lookup(new, "spec.versions") or ():
        for schema in _list_subschemas(lookup(version, _SCHEMA) or {}):
            name, kind = schema.get("format"), schema.get("type")
            if name and not formats.enforced_format((kind,) if kind else (), name):
                texts[f"unrecognized format {quote_go(name)}"] = None
    return list(texts)


def _list_subschemas(schema: Any) -> Iterator[Object]:
    if not isinstance(schema, dict):
        return
    yield schema
    for key in ("items", "additionalProperties", "not"):
        yield from _list_subschemas(schema.get(key))
    for inner in (schema.get("properties") or {}).values():
        yield from _list_subschemas(inner)
    for key in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(key) or ():
            yield from _list_subschemas(inner)


def _check_name_of_group_and_plural(definition: Scope) -> Errors:
    plural, group = definition.get("spec.names.plural") or "", definition.get("spec.group") or ""
    if definition.text("metadata.name") != f"{plural}.{group}":
        message = 'must be spec.names.plural+"."+spec.group'
        yield definition.invalid("metadata.name", message, definition.text("metadata.name"))


def _check_group(group: str) -> Iterable[str]:
    if messages := list(dns_subdomain(group)):
        return (",".join(messages),)
    return () if "." in group else ("should be a domain with at least one dot",)


def _check_label(label: str) -> list[str]:
    """Return at most one message with all problems of a DNS-1035 label."""
    messages = list(dns_1035_label(label))
    return [",".join(messages)] if messages else []


def _check_mixed_case_label(label: str) -> list[str]:
    return [f"may have mixed case, but should otherwise match: {message}" for message in _check_label(label.lower())]


def _check_deprecation_warning(version: Scope) -> Errors:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    unprintable = next((index for index, letter in enumerate(warning) if not letter.isprintable()), None)
    if not version.get("deprecated"):
        yield version.invalid("deprecationWarning", "can only be set for deprecated versions")
    elif not warning:
        yield version.invalid("deprecationWarning", "must not be an empty string")
    elif len(warning) > 256:
        yield version.invalid("deprecationWarning", "must be <= 256 characters long")
    elif unprintable is not None:
        message = "must only contain printable UTF-8 characters; non-printable character found at index"
        yield version.invalid("deprecationWarning", f"{message} {len(warning[:unprintable].encode())}")


def _check_one_storage_version(spec: Scope) -> Errors:
    versions: list[Object] = spec.get("versions") or []
    if versions and versions[0].get("name"):
        yield from spec.check("version", _check_label, versions[0]["name"])
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield _build_versions_error(spec, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield _build_versions_error(spec, "must have exactly one version marked as storage version")


def _build_versions_error(spec: Scope, message: str) -> FieldError:
    """Return an error whose value shows the versions as Go's internal type: without fields equal in all versions."""
    versions: list[Object] = spec.get("versions") or []
    differing = {key for key in _SHARED if any(v.get(key) != versions[0].get(key) for v in versions)}
    versions_text = [
        go_struct(
            {
                "Name": version.get("name", ""),
                "Served": bool(version.get("served")),
                "Storage": bool(version.get("storage")),
                "Deprecated": bool(version.get("deprecated")),
                "DeprecationWarning": version.get("deprecationWarning"),
                **{f"{k[0].upper()}{k[1:]}": version.get(k) if k in differing else None for k in _SHARED},
            }
        )
        for version in versions
    ]
    versions_value = "null" if spec.get("versions") is None else f"[{','.join(versions_text)}]"
    return FieldError("FieldValueInvalid", spec.path("versions"), f"Invalid value: {versions_value}: {message}")


def _check_conversion_webhook(conversion: Scope) -> Errors:
    """Check the webhook of a conversion. Errors name its fields as they are called inside a real server."""
    webhook = conversion.map("webhook")
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if conversion.text("strategy") != "Webhook":
        message = "should not be set when strategy is not set to Webhook"
        return [
            conversion.forbidden(name, message)
            for name, value in (("webhookClientConfig", client), ("conversionReviewVersions", versions))
            if value
        ]
    errors: list[FieldError] = []
    if client is None:
        errors.append(conversion.required("webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        errors += check_url_or_service(Scope(client, None, conversion, "webhookClientConfig"))
    if not versions:
        errors.append(conversion.required("conversionReviewVersions"))
    elif not {"v1", "v1beta1"} & set(versions):
        message = "must include at least one of v1, v1beta1"
        errors.append(field_errors.invalid(conversion.path("conversionReviewVersions"), versions, message))
    return errors


_CONVERSION: Final = first_error(
    field("strategy").required(), field("strategy").enum("None", "Webhook"), _check_conversion_webhook
)


def _find_error_scopes(spec: Scope, get: Callable[[Object], Any]) -> Iterator[tuple[Object, Scope]]:
    """Yield each version with the scope that errors about one of its fields name.

    If the field is equal in all versions, yield only one version with the scope of the spec.
    """
    versions = spec.items("versions")
    if versions and all(get(version) == get(versions[0]) for version in versions):
        yield versions[0], Scope(versions[0], None, spec)
    else:
        yield from ((version.value, version) for version in spec.each("versions"))


def _check_schemas(spec: Scope) -> Errors:
    old = [(v.get("name"), lookup(v, _SCHEMA)) for v in spec.old_value("versions") or ()]
    for version, owner in _find_error_scopes(spec, lambda version: lookup(version, _SCHEMA)):
        schema = lookup(version, _SCHEMA)
        if schema is None:
            continue
        is_shared = owner.path() == spec.path()
        path = spec.path("validation.openAPIV3Schema") if is_shared else owner.path(_SCHEMA)
        if lookup(version, "subresources.status") is not None:
            yield from _check_root_keywords(schema, path)
        yield from validate_crd_schema(schema, path, checks_costs=(version.get("name"), schema) not in old)


def _check_root_keywords(schema: Object, path: str) -> Errors:
    """Reject most keywords at the root of a schema if the kind has /status, because the status is validated alone."""
    kind = schema.get("type") or ""
    if kind not in ("", "object"):
        message = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield field_errors.invalid(f"{path}.type", kind, message)
    elif any(key not in _ROOT_KEYWORDS and value not in (None, "", False) for key, value in schema.items()):
        names = " ".join(_to_go_name(key) for key in _ROOT_KEYWORDS)
        message = f"only [{names}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield field_errors.invalid(path, schema, message)


def _to_go_name(key: str) -> str:
    key = "".join(part[:1].upper() + part[1:] for part in key.removeprefix("x-kubernetes-").split("-"))
    return f"X{key}" if key in ("PreserveUnknownFields", "Validations") else key


def _check_json_path(*starts: str) -> Callable[[str], Iterable[str]]:
    """Return a check of a simple JSON path, which must begin with one of `starts` if any are given."""
    places = " or ".join(start.rstrip(".") for start in starts)

    def check(path: str) -> Iterable[str]:
        if not path.startswith("."):
            return ("must be a simple json path starting with .",)
        if starts and not path.startswith(starts):
            return (f"should be a json path under {'either ' if len(starts) > 1 else ''}{places}",)
        return ()

    return check


def _check_column_json_path(column: Scope) -> Errors:
    path = column.text("jsonPath")
    return column.check("JSONPath", _check_json_path(), path) if path else [column.required("JSONPath")]


_SUBRESOURCES: Final = inside(
    "subresources.scale",
    field("specReplicasPath").required(_check_json_path(".spec.")),
    field("statusReplicasPath").required(_check_json_path(".status.")),
    field("labelSelectorPath").optional(_check_json_path(".spec.", ".status.")),
)
_COLUMNS: Final = each(
    "additionalPrinterColumns",
    field("name").required(),
    field("type").required(
        lambda kind: () if kind in _COLUMN_TYPES else (f"must be one of {','.join(_COLUMN_TYPES)}",),
        detail=f"must be one of {','.join(_COLUMN_TYPES)}",
    ),
    field("format").optional(
        lambda form: () if form in _COLUMN_FORMATS else (f"must be one of {','.join(_COLUMN_FORMATS)}",)
    ),
    _check_column_json_path,
)


def _check_version_parts(spec: Scope) -> Errors:
    """Check schemas, subresources, columns and selectable fields.

    Errors about parts equal in all versions name the spec.
    """
    errors = list(_check_schemas(spec))
    for _, owner in _find_error_scopes(spec, lambda version: version.get("subresources")):
        errors += _SUBRESOURCES(owner)
    for _, owner in _find_error_scopes(spec, lambda version: version.get("additionalPrinterColumns")):
        errors += _COLUMNS(owner)
    for version, owner in _find_error_scopes(spec, lambda version: version.get("selectableFields") or []):
        if not errors:
            errors += check_selectable_fields(owner, lookup(version, _SCHEMA))
    return errors


_DEFINITION: Final = (
    _check_name_of_group_and_plural,
    inside(
        "spec",
        field("group").required(_check_group),
        field("scope").required_enum("Cluster", "Namespaced"),
        each(
            "versions",
            field(_SCHEMA).required(allow_empty=True),
            field("name").check(_check_label, zero=""),
            _check_deprecation_warning,
        ),
        _check_one_storage_version,
        inside(
            "names",
            field(*_NAMES).required(),
            field("plural").optional(_check_label),
            field("singular").optional(_check_label),
            field("kind").optional(_check_mixed_case_label),
            field("listKind").optional(_check_mixed_case_label),
            field("shortNames").values(_check_label),
            field("categories").values(_check_label),
            field("listKind").invalid_if(
                lambda names: names.get("kind") and names.get("kind") == names.get("listKind"),
                "kind and listKind may not be the same",
            ),
            always=True,
        ),
        _check_version_parts,
        inside("conversion", _CONVERSION, always=True),
        field("preserveUnknownFields").invalid_if(
            {"preserveUnknownFields": NOT_EMPTY},
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ),
        always=True,
    ),
)
_IMMUTABLE_IF_ESTABLISHED: Final = (field("spec.scope", "spec.names.kind").immutable(),)
_IMMUTABLE: Final = field("spec.group", "spec.names.plural").immutable()


def _check_stored_versions(definition: Scope) -> Errors:
    stored, versions = definition.items("status.storedVersions"), definition.items("spec.versions")
    if not stored:
        yield definition.invalid("status.storedVersions", "must have at least one stored version", None)
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            message = f"must have the storage version {version.get('name')}"
            yield definition.invalid("status.storedVersions", message)
    names = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            yield definition.invalid(f"status.storedVersions[{index}]", _STORED.format(name), name)


def _check_approval(definition: Scope) -> Errors:
    """Require the annotation api-approved.kubernetes.io for a CRD in a group of the Kubernetes community."""
    if not f".{definition.get('spec.group') or ''}".endswith((".k8s.io", ".kubernetes.io")):
        return
    approval, old = (
        (lookup(obj, "metadata.annotations") or {}).get(_APPROVED) or "" for obj in (definition.value, definition.old)
    )
    message = f'protected groups must have approval annotation "{_APPROVED}"'
    if definition.old is not None and approval == old:
        return
    if not approval:
        yield definition.required(f"metadata.annotations[{_APPROVED}]", f"{message}, {_APPROVAL_LINK}")
    elif not approval.startswith("unapproved") and not re.match(r"[a-z][a-z0-9+.-]*://[^\s/]+", approval):
        message = f'{message} with either a URL or a reason starting with "unapproved", {_APPROVAL_LINK}'
        yield definition.invalid(f"metadata.annotations[{_APPROVED}]", message, approval)
