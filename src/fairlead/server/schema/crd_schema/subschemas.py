"""The schemas inside a schema: its children, and the alternatives in anyOf, allOf, oneOf and not."""

from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]
COMBINATORS: Final = ("anyOf", "allOf", "oneOf")


def list_children(schema: Schema, path: str) -> Iterator[tuple[Schema, str, str]]:
    """Yield the schemas of items, properties and additionalProperties, each with its path and level."""
    if isinstance(schema.get("items"), dict):
        yield schema["items"], f"{path}.items", "item"
    for key, inner in (schema.get("properties") or {}).items():
        yield inner, f"{path}.properties[{key}]", "field"
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"], f"{path}.additionalProperties", "field"


def list_alternatives(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    """Yield the schemas in anyOf, allOf, oneOf and not, each with its path."""
    for combinator in COMBINATORS:
        for index, inner in enumerate(schema.get(combinator) or ()):
            yield inner, f"{path}.{combinator}[{index}]"
    if schema.get("not") is not None:
        yield schema["not"], f"{path}.not"
