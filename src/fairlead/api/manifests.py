"""Read objects from manifest files."""

from pathlib import Path
from typing import Any

from fairlead.api import documents
from fairlead.api.errors import UserError
from fairlead.api.objects import Object

# Other objects of a file may need these to exist.
_PREREQUISITES = ("CustomResourceDefinition", "Namespace")


def is_prerequisite(obj: Object) -> bool:
    """Return whether the object is a CustomResourceDefinition or a Namespace, which other objects may need first."""
    return obj.kind in _PREREQUISITES


def read_objects(path: Path) -> list[Object]:
    """Return the objects of a YAML or JSON file. A `kind: List` is replaced by its items.

    Raises UserError if the file cannot be read or contains something else.
    """
    try:
        parsed = documents.parse_all(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}): check its permissions") from error
    except documents.InvalidYaml as error:
        raise UserError(f"{path}: {error}; correct it") from error
    objects: list[Object] = []
    for document in parsed:
        if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
            raise UserError(f"{path} holds something that is no object: each document needs apiVersion and kind")
        items: Any = document.get("items") if str(document["kind"]).endswith("List") else [document]
        objects += [Object(item) for item in items or ()]
    return objects
