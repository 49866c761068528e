"""What ownership asks of the kind at hand: its schema at each version, and conversion between them."""

from typing import Any, Protocol

from fairlead.server.ownership.conformance import TypedError, conforms, problems
from fairlead.server.ownership.shapes import Shape, shape_of
from fairlead.server.schema.nodes import Node


class Schemas(Protocol):
    """The versions of one kind."""

    def node(self, api_version: str) -> Node | None:
        """The schema at a version, None for one that is not served: entries of it are dropped."""

    def convert(self, obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        """`obj` at a version; itself where it is of that version already."""

    def empty(self, api_version: str) -> dict[str, Any]:
        """The object with nothing set: apiVersion and kind, and for a built-in kind what its Go type always encodes
        (`status: {}`). A first write is compared with it."""


def shape_at(schemas: Schemas, api_version: str) -> Shape | None:
    """The shape of the kind at a version, None for one that is not served."""
    node = schemas.node(api_version)
    return None if node is None else shape_of(node)


def served(schemas: Schemas, api_version: str) -> Shape:
    """The shape at a version that must be served."""
    shape = shape_at(schemas, api_version)
    if shape is None:
        raise TypedError(f"no corresponding type for {api_version}")
    return shape


def converted(schemas: Schemas, obj: dict[str, Any], api_version: str, failing: str = "") -> dict[str, Any]:
    """`obj` at a version that is served. What is converted must fit there, and without repeated items."""
    if obj["apiVersion"] == api_version:
        return obj
    out = schemas.convert(obj, api_version)
    shape = served(schemas, api_version)
    if not conforms(shape, out, repeats=False):
        raise TypedError(failing + problems(shape, out, repeats=False))
    return out
