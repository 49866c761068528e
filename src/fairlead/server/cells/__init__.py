"""What stands in the cells of a Table of built-in objects: one small function a column."""

from fairlead.server.cells import cluster, namespaced
from fairlead.server.cells.namespaced import TIMED
from fairlead.server.cells.pods import conditions
from fairlead.server.cells.words import at

CELLS = {**namespaced.CELLS, **cluster.CELLS}

__all__ = ["CELLS", "TIMED", "at", "conditions"]
