"""Embedded resources: an object inside a custom resource that has an apiVersion, a kind and metadata of its own."""

from typing import Any

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.golang import encoding
from fairlead.server.schema import builtin, codec
from fairlead.server.schema.nodes import Node
from fairlead.server.write import names
from fairlead.server.write.metadata import general


def validate_embedded_resources(node: Node | None, value: Any, path: str = "") -> list[FieldError]:
    """What is wrong with the apiVersions, kinds and metadata of embedded resources. The root is not one of them."""
    if node is None or node.constraints is None:
        return []
    found: list[FieldError] = []
    if type(value) is dict:
        if node.embedded and path:
            found += _resource(value, path)
        for key, inner in value.items():
            if type(inner) is dict or type(inner) is list:
                child = node.constraints.properties.get(key)
                if child is not None:
                    found += validate_embedded_resources(child, inner, f"{path}.{key}" if path else key)
                elif node.values is not None:
                    found += validate_embedded_resources(node.values, inner, f"{path}[{key}]")
    elif type(value) is list:
        for index, item in enumerate(value):
            found += validate_embedded_resources(node.items, item, f"{path}[{index}]")
    return found


def _resource(value: dict[str, Any], path: str) -> list[FieldError]:
    found = [field_errors.required(f"{path}.{key}") for key in ("apiVersion", "kind") if key not in value]
    version, kind = value.get("apiVersion"), value.get("kind")
    if version == "":
        found.append(field_errors.invalid(f"{path}.apiVersion", version, "must not be empty"))
    elif isinstance(version, str) and version.count("/") > 1:
        found.append(field_errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    if kind == "":
        found.append(field_errors.invalid(f"{path}.kind", kind, "must not be empty"))
    elif isinstance(kind, str) and (problems := names.dns1035(kind.lower())):
        told = "may have mixed case, but should otherwise match: " + ",".join(problems)
        found.append(field_errors.invalid(f"{path}.kind", kind, told))
    metadata = value.get("metadata")
    if metadata is not None:  # neither a name nor a namespace need be there
        try:
            codec.decode(builtin.schema_of_type("meta.v1.ObjectMeta"), encoding.normalize_numbers(metadata))
        except codec.DecodeError as error:  # of a default: what is sent is decoded before
            return [*found, field_errors.invalid(f"{path}.metadata", metadata, error.message)]
        named = {"name": "unnamed", **{key: one for key, one in metadata.items() if one != ""}}
        found += general(named, names.path_segment, namespaced="namespace" in named, path=f"{path}.metadata")
    return found
