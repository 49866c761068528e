"""The table cells of built-in kinds: one function per column."""

from fairlead.server.tables.cells import cluster, namespaced
from fairlead.server.tables.cells.formatters import at
from fairlead.server.tables.cells.namespaced import TIMED
from fairlead.server.tables.cells.pods import conditions

CELLS = {**namespaced.CELLS, **cluster.CELLS}

__all__ = ["CELLS", "TIMED", "at", "conditions"]
