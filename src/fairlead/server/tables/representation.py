"""The Table representation of lists, objects and watch events."""

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from fairlead.api.gojson import quote_go
from fairlead.server.errors.statuses import bad_request
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Response
from fairlead.server.http.representations import Page, Representation, partial_metadata
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored
from fairlead.server.tables import cells
from fairlead.server.tables.ages import UNKNOWN, format_age
from fairlead.server.tables.columns import custom_cell

COLUMN_DESCRIPTION = "Custom resource definition column (in JSONPath format): "


def validate_include_object(value: str) -> None:
    """Raise 400 if the query parameter includeObject has an invalid value."""
    if value not in ("", "None", "Metadata", "Object"):
        message = f"includeObject: Invalid value: {quote_go(value)}: must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {message}")


@cache
def _read_columns() -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.json.decode((files("fairlead.server.tables") / "columns.json").read_bytes())
    return facts


def _get_builtin_columns(key: str) -> list[list[Any]]:
    kinds: dict[str, list[list[Any]]] = _read_columns()["kinds"]
    return kinds.get(key) or kinds["/limitranges"]  # name and creation time, which every kind has


@cache
def _build_builtin_definitions(key: str) -> list[Object]:
    texts = _read_columns()["texts"]
    names = ("name", "type", "format", "priority")
    return [dict(zip(names, c, strict=False)) | {"description": texts[c[4]]} for c in _get_builtin_columns(key)]


def column_definitions(resource: Resource) -> list[Object]:
    """Return the columnDefinitions of a kind's tables."""
    if not resource.custom:
        return _build_builtin_definitions(f"{resource.group}/{resource.plural}")
    name, *_ = _build_builtin_definitions("/configmaps")
    if not resource.columns:
        created = {**_build_builtin_definitions("/limitranges")[1], "name": "Age"}
        return [name, created]
    return [name] + [
        {
            "name": column["name"],
            "type": column["type"],
            "format": column.get("format") or "",
            "description": column.get("description") or COLUMN_DESCRIPTION + column["jsonPath"],
            "priority": column.get("priority") or 0,
        }
        for column in resource.columns
    ]


class TableRepresentation(Representation):
    """Encodes objects as a Table. includeObject says whether a row has the object, its metadata, or neither."""

    name = "table"
    shared = False  # only the first event of a watch has column definitions

    def __init__(self, resource: Resource, as_yaml: bool, version: str, include: str, now: float) -> None:
        super().__init__(resource, as_yaml)
        self._api_version = f"meta.k8s.io/{version}"
        self._include = include or "Metadata"
        self._now = now
        self._columns: list[Object] | None = column_definitions(resource)

    def encode(self, stored: Stored) -> bytes:
        """Return the Table of one watch event. Only the first event of a watch has column definitions."""
        columns, self._columns = self._columns, None
        metadata = {"resourceVersion": str(stored.version)}
        return encoding.encode(self._build_document(columns, [self._build_row(stored)], metadata))

    def object_response(self, status: int, stored: Stored, warnings: list[str]) -> Response:
        metadata = {"resourceVersion": str(stored.version)}
        document = self._build_document(column_definitions(self.resource), [self._build_row(stored)], metadata)
        return self._build_response(status, encoding.encode(document), warnings)

    def list_response(self, status: int, page: Page, warnings: list[str]) -> Response:
        rows: list[Object] | None = [self._build_row(stored) for stored in page.items]
        columns = column_definitions(self.resource)
        if not rows and not self.resource.custom and columns[1]["name"] == "Created At":
            rows = None
        metadata: Object = {"resourceVersion": str(page.version)}
        if page.continue_:
            metadata["continue"] = page.continue_
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        return self._build_response(status, encoding.encode(self._build_document(columns, rows, metadata)), warnings)

    def bookmark(self, version: int, annotations: dict[str, str]) -> Object:
        """Return the Table of a BOOKMARK event: one row with only the version and the annotations."""
        columns, self._columns = self._columns, None
        row = self._build_row_of_object(super().bookmark(version, annotations))
        return self._build_document(columns, [row], {"resourceVersion": str(version)})

    def _build_document(self, columns: list[Object] | None, rows: list[Object] | None, metadata: Object) -> Object:
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        }

    def _build_row(self, stored: Stored) -> Object:
        return self._build_row_of_object(versions.view(self.resource, stored).object)

    def _build_row_of_object(self, obj: Object) -> Object:
        row_object: Object | None = None
        if self._include == "Object":
            row_object = obj
        elif self._include == "Metadata":
            metadata = partial_metadata(self.resource, obj)
            row_object = {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": metadata}
        is_pod = (self.resource.group, self.resource.kind) == ("", "Pod")
        conditions = {"conditions": rows} if is_pod and (rows := cells.conditions(obj)) else {}
        return {"cells": self._build_cells(obj), **conditions, "object": row_object}

    def _build_cells(self, obj: Object) -> list[Any]:
        resource, now = self.resource, self._now
        name, created = obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")
        if resource.custom:
            if not resource.columns:
                return [name, format_age(created, now) if created else None]
            return [name, *(custom_cell(column, obj, now) for column in resource.columns)]
        key = f"{resource.group}/{resource.plural}"
        cell_functions, timed = cells.CELLS.get(key, {}), cells.TIMED.get(key, {})
        row: list[Any] = []
        for column in column_definitions(resource):
            title = column["name"]
            if title in cell_functions:
                row.append(cell_functions[title](obj))
            elif title in timed:
                row.append(timed[title](obj, now))
            elif title == "Name":
                row.append(name)
            elif title == "Age":
                row.append(format_age(created, now))
            elif title == "Created At":
                row.append(created)
            else:
                row.append(UNKNOWN)
        return row
