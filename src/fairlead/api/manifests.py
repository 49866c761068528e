"""Read objects from manifest files."""

from pathlib import Path
from typing import Any

from fairlead.api import documents
from fairlead.api.errors import UserError
from fairlead.api.objects import Object

# Other objects of a file may need these to exist.
_PREREQUISITES = ("CustomResourceDefinition", "Namespace")


def is_prerequisite(obj: Object) -> bool:
    """Return whether other objects may need this one first: a CustomResourceDefinition or a Namespace."""
    return obj.kind in _PREREQUISITES


def read_objects(path: Path) -> list[Object]:
    """Return the objects in a YAML or JSON file, with the items of lists. Raises UserError."""
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
