"""Field sets: FieldsV1 paths, set algebra, who owns what. Pure functions on plain data.

owned = FieldSet.decode(entry["fieldsV1"])
path("spec", "containers", {"name": "app"}, "image") in owned
[human(p) for p in owned - theirs]
"""

from fairlead.api.fields.elements import Path, field, human, index, key, path, value
from fairlead.api.fields.fieldset import FieldSet, union

__all__ = ["FieldSet", "Path", "field", "human", "index", "key", "path", "union", "value"]
