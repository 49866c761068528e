"""Tables: lists and events as rows and columns, which is what kubectl shows."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.server.errors.field_errors import quote_go
from fairlead.server.errors.statuses import bad_request
from fairlead.server.golang import encoding
from fairlead.server.http.messages import Response
from fairlead.server.http.representations import Representation, partial_metadata
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored
from fairlead.server.tables import cells
from fairlead.server.tables.ages import UNKNOWN, age
from fairlead.server.tables.columns import custom_cell

if TYPE_CHECKING:
    from fairlead.server.verbs.lists import Page

COLUMN = "Custom resource definition column (in JSONPath format): "


def validate_include_object(wanted: str) -> None:
    """Refuse what no row can hold."""
    if wanted not in ("", "None", "Metadata", "Object"):
        told = f"includeObject: Invalid value: {quote_go(wanted)}: must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {told}")


@cache
def _table() -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.json.decode((files("fairlead.server.tables") / "columns.json").read_bytes())
    return facts


def _builtin_columns(key: str) -> list[list[Any]]:
    kinds: dict[str, list[list[Any]]] = _table()["kinds"]
    return kinds.get(key) or kinds["/limitranges"]  # name and creation: what every kind has


@cache
def _definitions(key: str) -> list[Object]:
    texts = _table()["texts"]
    names = ("name", "type", "format", "priority")
    return [dict(zip(names, c, strict=False)) | {"description": texts[c[4]]} for c in _builtin_columns(key)]


def definitions(resource: Resource) -> list[Object]:
    """The columns of a kind."""
    if not resource.custom:
        return _definitions(f"{resource.group}/{resource.plural}")
    name, *_ = _definitions("/configmaps")
    if not resource.columns:
        created = {**_definitions("/limitranges")[1], "name": "Age"}
        return [name, created]
    return [name] + [
        {
            "name": column["name"],
            "type": column["type"],
            "format": column.get("format") or "",
            "description": column.get("description") or COLUMN + column["jsonPath"],
            "priority": column.get("priority") or 0,
        }
        for column in resource.columns
    ]


class TableRepresentation(Representation):
    """Rows of cells. Each row carries the object's metadata, the object, or nothing, as asked for."""

    name = "table"
    shared = False  # the first event of a watch is unlike the others

    def __init__(self, resource: Resource, as_yaml: bool, version: str, include: str, now: float) -> None:
        super().__init__(resource, as_yaml)
        self._api_version = f"meta.k8s.io/{version}"
        self._include = include or "Metadata"
        self._now = now
        self._columns: list[Object] | None = definitions(resource)

    def encode(self, stored: Stored) -> bytes:
        """One event's Table; only the first one names the columns."""
        columns, self._columns = self._columns, None
        metadata = {"resourceVersion": str(stored.version)}
        return encoding.encode(self._document(columns, [self._row(stored)], metadata))

    def object_response(self, status: int, stored: Stored, warnings: list[str]) -> Response:
        metadata = {"resourceVersion": str(stored.version)}
        document = self._document(definitions(self.resource), [self._row(stored)], metadata)
        return self._response(status, encoding.encode(document), warnings)

    def list_response(self, status: int, page: "Page", warnings: list[str]) -> Response:
        rows: list[Object] | None = [self._row(stored) for stored in page.items]
        columns = definitions(self.resource)
        if not rows and not self.resource.custom and columns[1]["name"] == "Created At":
            rows = None
        metadata: Object = {"resourceVersion": str(page.version)}
        if page.continue_:
            metadata["continue"] = page.continue_
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        return self._response(status, encoding.encode(self._document(columns, rows, metadata)), warnings)

    def bookmark(self, version: int, annotations: dict[str, str]) -> Object:
        """A row of an object that has nothing but the version, and what the annotations say."""
        columns, self._columns = self._columns, None
        row = self._row_of(super().bookmark(version, annotations))
        return self._document(columns, [row], {"resourceVersion": str(version)})

    def _document(self, columns: list[Object] | None, rows: list[Object] | None, metadata: Object) -> Object:
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        }

    def _row(self, stored: Stored) -> Object:
        return self._row_of(versions.view(self.resource, stored).object)

    def _row_of(self, obj: Object) -> Object:
        shown: Object | None = None
        if self._include == "Object":
            shown = obj
        elif self._include == "Metadata":
            metadata = partial_metadata(self.resource, obj)
            shown = {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": metadata}
        pod = (self.resource.group, self.resource.kind) == ("", "Pod")
        ended = {"conditions": told} if pod and (told := cells.conditions(obj)) else {}
        return {"cells": self._cells(obj), **ended, "object": shown}

    def _cells(self, obj: Object) -> list[Any]:
        resource, now = self.resource, self._now
        name, created = obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")
        if resource.custom:
            if not resource.columns:
                return [name, age(created, now) if created else None]
            return [name, *(custom_cell(column, obj, now) for column in resource.columns)]
        key = f"{resource.group}/{resource.plural}"
        own, timed = cells.CELLS.get(key, {}), cells.TIMED.get(key, {})
        row: list[Any] = []
        for column in definitions(resource):
            title = column["name"]
            if title in own:
                row.append(own[title](obj))
            elif title in timed:
                row.append(timed[title](obj, now))
            elif title == "Name":
                row.append(name)
            elif title == "Age":
                row.append(age(created, now))
            elif title == "Created At":
                row.append(created)
            else:
                row.append(UNKNOWN)
        return row
