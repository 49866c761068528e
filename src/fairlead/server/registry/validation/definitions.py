"""Custom resource definitions: names, versions, schemas, and what may not change."""

import re
from collections.abc import Iterator
from typing import Any, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation import selectable
from fairlead.server.registry.validation.vocabulary import Object, at, unchanged
from fairlead.server.schema import formats
from fairlead.server.schema.crd_schema_validation import validate_crd_schema
from fairlead.server.write import names

_APPROVED: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_MIXED: Final = "may have mixed case, but should otherwise match: "
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_STORED: Final = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
)

_ROOT: Final = (  # what the root of a schema may say where its status is a subresource
    "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties",
    "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
)  # fmt: skip


def definition(new: Object, old: Object | None) -> list[FieldError]:
    spec = new.get("spec") or {}
    versions: list[Object] = spec.get("versions") or []
    found: list[FieldError] = []
    name, called = new["metadata"].get("name") or "", spec.get("names") or {}
    if name != f"{called.get('plural', '')}.{spec.get('group', '')}":
        found.append(field_errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    found += _group(spec.get("group") or "")
    scope = spec.get("scope") or ""
    if not scope:
        found.append(field_errors.required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        found.append(field_errors.not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    found += _versions(spec.get("versions"))
    found += _names(called)
    found += _schemas(versions, at(old or {}, "spec.versions") or [])
    found += _conversion(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        told = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(field_errors.invalid("spec.preserveUnknownFields", True, told))
    if old is not None:
        established = [c for c in at(old, "status.conditions") or () if c["type"] == "Established"]
        fixed = ("spec.scope", "spec.names.kind") if established and established[0]["status"] == "True" else ()
        changed = unchanged(new, old, *fixed, "spec.group", "spec.names.plural")
        if changed:  # the name follows from these and is not told twice
            found = [cause for cause in found if cause.field != "metadata.name"]
        found += changed
    found += _stored(at(new, "status.storedVersions") or [], versions)
    return found + _approval(new, spec.get("group") or "", old)


def status(new: Object, old: Object | None) -> list[FieldError]:
    """Nothing is wrong with what /status says: which versions are stored, its writer must know."""
    return []


def warnings(new: Object, old: Object | None) -> list[str]:
    """Formats that the server does not know are passed over, with a warning."""
    told: dict[str, None] = {}
    for version in at(new, "spec.versions") or ():
        for schema in _walk(at(version, "schema.openAPIV3Schema") or {}):
            name, kind = schema.get("format"), schema.get("type")
            if name and not formats.enforced_format((kind,) if kind else (), name):
                told[f"unrecognized format {field_errors.quote_go(name)}"] = None
    return list(told)


def _walk(schema: Any) -> Iterator[Object]:
    if not isinstance(schema, dict):
        return
    yield schema
    for key in ("items", "additionalProperties", "not"):
        yield from _walk(schema.get(key))
    for inner in (schema.get("properties") or {}).values():
        yield from _walk(inner)
    for key in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(key) or ():
            yield from _walk(inner)


def _label(text: str) -> str:
    return ",".join(names.dns1035(text))


def _group(group: str) -> list[FieldError]:
    if not group:
        return [field_errors.required("spec.group")]
    if told := names.subdomain(group):
        return [field_errors.invalid("spec.group", group, ",".join(told))]
    return (
        [] if "." in group else [field_errors.invalid("spec.group", group, "should be a domain with at least one dot")]
    )


def _names(given: Object) -> list[FieldError]:
    keys = ("plural", "singular", "kind", "listKind")
    found = [field_errors.required(f"spec.names.{key}") for key in keys if not given.get(key)]
    for key in keys:
        text: str = given.get(key) or ""
        mixed = key in ("kind", "listKind")
        if text and (told := _label(text.lower() if mixed else text)):
            found.append(field_errors.invalid(f"spec.names.{key}", text, f"{_MIXED}{told}" if mixed else told))
    for key in ("shortNames", "categories"):
        for index, text in enumerate(given.get(key) or ()):
            if told := _label(text):
                found.append(field_errors.invalid(f"spec.names.{key}[{index}]", text, told))
    if given.get("kind") and given["kind"] == given.get("listKind"):
        told = "kind and listKind may not be the same"
        found.append(field_errors.invalid("spec.names.listKind", given["listKind"], told))
    return found


def _warning(version: Object) -> str:
    """What is wrong with the warning of a version; empty where nothing is."""
    text = version.get("deprecationWarning")
    if text is None:
        return ""
    if not version.get("deprecated"):
        return "can only be set for deprecated versions"
    if not text:
        return "must not be an empty string"
    if len(text) > 256:
        return "must be <= 256 characters long"
    odd = next((index for index, ch in enumerate(text) if not ch.isprintable()), None)
    told = "must only contain printable UTF-8 characters; non-printable character found at index"
    return "" if odd is None else f"{told} {len(text[:odd].encode())}"


def _versions(given: list[Object] | None) -> list[FieldError]:
    versions = given or []
    found: list[FieldError] = []
    for index, version in enumerate(versions):
        here, name = f"spec.versions[{index}]", version.get("name") or ""
        if at(version, "schema.openAPIV3Schema") is None:
            found.append(field_errors.required(f"{here}.schema.openAPIV3Schema"))
        if told := _label(name):
            found.append(field_errors.invalid(f"{here}.name", name, told))
        if told := _warning(version):
            found.append(field_errors.invalid(f"{here}.deprecationWarning", version["deprecationWarning"], told))
    if versions and (told := _label(versions[0].get("name") or "")) and versions[0].get("name"):
        found.append(field_errors.invalid("spec.version", versions[0]["name"], told))
    shown = "null" if given is None else _internal(versions)
    listed = [version.get("name") for version in versions]
    if len(set(listed)) != len(listed):
        found.append(_of_versions(shown, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        told = "must have exactly one version marked as storage version"
        found.append(_of_versions(shown, told))
    return found


def _of_versions(shown: str, told: str) -> FieldError:
    return FieldError("FieldValueInvalid", "spec.versions", f"Invalid value: {shown}: {told}")


def _internal(versions: list[Object]) -> str:
    """The versions as the Go type inside the server encodes; what all of them share stands elsewhere."""
    shared = {key: all(one.get(key) == versions[0].get(key) for one in versions) for key in _SHARED}
    made = []
    for version in versions:
        fields = {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
        }
        fields |= {f"{key[0].upper()}{key[1:]}": None if shared[key] else version.get(key) for key in _SHARED}
        made.append(
            "{" + ",".join(f'"{key}":{field_errors.format_value(value)}' for key, value in fields.items()) + "}"
        )
    return f"[{','.join(made)}]"


def _conversion(given: Object) -> list[FieldError]:
    strategy = given.get("strategy") or ""
    if not strategy:
        return [field_errors.required("spec.conversion.strategy")]
    if strategy == "Webhook":
        told = "this server converts between versions by None only: webhooks are not called"
        return [field_errors.forbidden("spec.conversion.strategy", told)]
    if strategy != "None":
        return [field_errors.not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))]
    told = "should not be set when strategy is not set to Webhook"
    webhook = given.get("webhook") or {}
    keys = (("clientConfig", "webhookClientConfig"), ("conversionReviewVersions", "conversionReviewVersions"))
    return [field_errors.forbidden(f"spec.conversion.{name}", told) for key, name in keys if webhook.get(key)]


def _schemas(versions: list[Object], before: list[Object]) -> list[FieldError]:
    """Schemas, subresources and columns. What all versions share is told of the definition as a whole."""
    found: list[FieldError] = []
    schemas = [at(version, "schema.openAPIV3Schema") for version in versions]
    alike = len(schemas) > 0 and all(schema == schemas[0] for schema in schemas)
    stood = [(one.get("name"), at(one, "schema.openAPIV3Schema")) for one in before]
    for index, schema in enumerate(schemas[:1] if alike else schemas):
        path = "spec.validation" if alike else f"spec.versions[{index}].schema"
        if schema is not None:
            if at(versions[index], "subresources.status") is not None:
                found += _apart_from_status(schema, f"{path}.openAPIV3Schema")
            found += validate_crd_schema(
                schema, f"{path}.openAPIV3Schema", costs=(versions[index].get("name"), schema) not in stood
            )
    for key, check in (("subresources", _subresources), ("additionalPrinterColumns", _columns)):
        given = [version.get(key) for version in versions]
        alike = len(given) > 0 and all(one == given[0] for one in given)
        for index, one in enumerate(given[:1] if alike else given):
            found += check(one, f"spec.{key}" if alike else f"spec.versions[{index}].{key}")
    given = [version.get("selectableFields") or [] for version in versions]
    alike = len(given) > 0 and all(one == given[0] for one in given)
    for index, one in enumerate(given[:1] if alike else given):
        path = "spec.selectableFields" if alike else f"spec.versions[{index}].selectableFields"
        found += selectable.fields(one, schemas[index], path) if one and not found else []
    return found


def _apart_from_status(schema: Object, path: str) -> list[FieldError]:
    """The root of a schema whose status is validated by itself may say little besides its properties."""
    if (kind := schema.get("type") or "") not in ("", "object"):
        told = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [field_errors.invalid(f"{path}.type", kind, told)]
    if all(key in _ROOT or value in (None, "", False) for key, value in schema.items()):
        return []
    names = " ".join(_go_name(key) for key in _ROOT)
    told = f"only [{names}] fields are allowed at the root of the schema if the status subresource is enabled"
    return [field_errors.invalid(path, schema, told)]


def _go_name(key: str) -> str:
    key = "".join(part[:1].upper() + part[1:] for part in key.removeprefix("x-kubernetes-").split("-"))
    return f"X{key}" if key in ("PreserveUnknownFields", "Validations") else key


def _subresources(given: Any, path: str) -> list[FieldError]:
    scale = (given or {}).get("scale")
    if scale is None:
        return []
    found: list[FieldError] = []
    for key, under in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        found += _json_path(scale.get(key) or "", f"{path}.scale.{key}", under)
    if scale.get("labelSelectorPath"):
        found += _json_path(scale["labelSelectorPath"], f"{path}.scale.labelSelectorPath", (".spec.", ".status."))
    return found


def _json_path(text: str, field: str, under: tuple[str, ...]) -> list[FieldError]:
    if not text:
        return [field_errors.required(field)]
    if not text.startswith("."):
        return [field_errors.invalid(field, text, "must be a simple json path starting with .")]
    if under and not text.startswith(under):
        places = " or ".join(place.rstrip(".") for place in under)
        return [
            field_errors.invalid(
                field, text, f"should be a json path under {'either ' if len(under) > 1 else ''}{places}"
            )
        ]
    return []


def _columns(given: Any, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, column in enumerate(given or ()):
        here, kind = f"{path}[{index}]", column.get("type") or ""
        if not column.get("name"):
            found.append(field_errors.required(f"{here}.name"))
        told = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not kind:
            found.append(field_errors.required(f"{here}.type", told))
        elif kind not in _COLUMN_TYPES:
            found.append(field_errors.invalid(f"{here}.type", kind, told))
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            told = f"must be one of {','.join(_COLUMN_FORMATS)}"
            found.append(field_errors.invalid(f"{here}.format", column["format"], told))
        found += _json_path(column.get("jsonPath") or "", f"{here}.JSONPath", ())
    return found


def _stored(stored: list[str], versions: list[Object]) -> list[FieldError]:
    if not stored:
        return [field_errors.invalid("status.storedVersions", None, "must have at least one stored version")]
    found: list[FieldError] = []
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            told = f"must have the storage version {version.get('name')}"
            found.append(field_errors.invalid("status.storedVersions", stored, told))
    known = {version.get("name") for version in versions}
    gone = [(index, name) for index, name in enumerate(stored) if name not in known]
    return found + [field_errors.invalid(f"status.storedVersions[{i}]", name, _STORED.format(name)) for i, name in gone]


def _approval(new: Object, group: str, old: Object | None) -> list[FieldError]:
    """Groups of the Kubernetes community need an approval noted on the definition."""
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return []
    field = f"metadata.annotations[{_APPROVED}]"
    given = (new["metadata"].get("annotations") or {}).get(_APPROVED) or ""
    if old is not None and given == ((old["metadata"].get("annotations") or {}).get(_APPROVED) or ""):
        return []
    told = f'protected groups must have approval annotation "{_APPROVED}"'
    if not given:
        return [field_errors.required(field, f"{told}, {_SEE}")]
    if given.startswith("unapproved") or re.match(r"[a-z][a-z0-9+.-]*://[^\s/]+", given):
        return []
    return [
        field_errors.invalid(field, given, f'{told} with either a URL or a reason starting with "unapproved", {_SEE}')
    ]
