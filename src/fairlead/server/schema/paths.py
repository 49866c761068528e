"""Simple paths into a schema, as definitions write them: `.spec.size`, `['a.b']`."""

import re
from typing import Final

from fairlead.server.schema.nodes import Node
from fairlead.server.schema.structural import ANYTHING

_STEP: Final = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']+)'\]")


def find_node(node: Node, text: str) -> Node | None:
    """The node at a path of names (`.a`, `['a']`), None where the schema has none or this is no such path."""
    place: Node | None = node
    end = 0
    for step in _STEP.finditer(text):
        if place is None or step.start() != end or place.constraints is None:
            return None
        end, name = step.end(), step[1] or step[2]
        values = place.values if place.values is not ANYTHING else None
        place = place.constraints.properties.get(name) or values
    return place if end == len(text) and end else None
