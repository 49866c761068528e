"""Simple paths into a schema, as CustomResourceDefinitions write them: `.spec.size`, `['a.b']`."""

import re
from typing import Final

from fairlead.server.schema.nodes import Node
from fairlead.server.schema.structural import ANYTHING

_STEP: Final = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']+)'\]")


def find_node(root: Node, path: str) -> Node | None:
    """Return the schema node at a path, or None if the path is malformed or the schema does not declare it."""
    node: Node | None = root
    end = 0
    for step in _STEP.finditer(path):
        if node is None or step.start() != end or node.constraints is None:
            return None
        end, name = step.end(), step[1] or step[2]
        values = node.values if node.values is not ANYTHING else None
        node = node.constraints.properties.get(name) or values
    return node if end == len(path) and end else None
