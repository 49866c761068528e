"""Field sets: the paths of FieldsV1 and set operations on them.

owned = FieldSet.decode(entry["fieldsV1"])
path("spec", "containers", {"name": "app"}, "image") in owned
[format_path(p) for p in owned - theirs]
"""

from fairlead.api.fields.field_set import FieldSet, union
from fairlead.api.fields.path_elements import Path, field, format_path, index, key, path, value

__all__ = ["FieldSet", "Path", "field", "format_path", "index", "key", "path", "union", "value"]
