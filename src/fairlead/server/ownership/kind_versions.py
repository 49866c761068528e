"""`KindVersions`: the schema of each version of a kind, and conversion between the versions."""

from typing import Any, Protocol

from fairlead.server.ownership.conformance import TypedError, conforms, describe_problems
from fairlead.server.ownership.merge_schema import MergeSchema, merge_schema_of
from fairlead.server.schema.nodes import Node


class KindVersions(Protocol):
    """The schemas and conversions of the versions of one kind."""

    def find_schema(self, api_version: str) -> Node | None:
        """Return the schema of a version, or None if the version is not served."""

    def convert(self, obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        """Return `obj` converted to a version, or `obj` itself if it has that version."""

    def build_empty(self, api_version: str) -> dict[str, Any]:
        """Return the empty object with which a create is compared.

        The object has an apiVersion and a kind. For a built-in kind, it also has the fields that its Go type always
        encodes (`status: {}`).
        """


def find_merge_schema(versions: KindVersions, api_version: str) -> MergeSchema | None:
    """Return the merge schema of a version, or None if the version is not served."""
    node = versions.find_schema(api_version)
    return None if node is None else merge_schema_of(node)


def get_merge_schema(versions: KindVersions, api_version: str) -> MergeSchema:
    """Return the merge schema of a version. Raise TypedError if the version is not served."""
    schema = find_merge_schema(versions, api_version)
    if schema is None:
        raise TypedError(f"no corresponding type for {api_version}")
    return schema


def convert_to(versions: KindVersions, obj: dict[str, Any], api_version: str, error_prefix: str = "") -> dict[str, Any]:
    """Return `obj` converted to a served version. Raises TypedError if the result does not conform to its schema."""
    if obj["apiVersion"] == api_version:
        return obj
    converted = versions.convert(obj, api_version)
    schema = get_merge_schema(versions, api_version)
    if not conforms(schema, converted, allow_duplicates=False):
        raise TypedError(error_prefix + describe_problems(schema, converted, allow_duplicates=False))
    return converted
