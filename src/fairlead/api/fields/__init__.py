"""Field sets: the field paths of a managedFields entry (FieldsV1), with set operations.

owned = FieldSet.decode(entry["fieldsV1"])
path("spec", "containers", {"name": "app"}, "image") in owned
[format_path(p) for p in owned - theirs]
"""

from fairlead.api.fields.field_set import FieldSet, union
from fairlead.api.fields.path_elements import Path, field, format_path, index, key, path, value

__all__ = ["FieldSet", "Path", "field", "format_path", "index", "key", "path", "union", "value"]
