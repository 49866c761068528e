"""Schemas, and an object with managed fields, for the tests of ownership."""

from typing import Any

from fairlead.server import ownership
from fairlead.server.ownership import FieldWrite
from fairlead.server.schema.nodes import Node

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def text() -> Node:
    return Node("string")


def metadata() -> Node:
    fields = {name: text() for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")}
    return Node(
        "object",
        fields={
            **fields,
            "labels": Node("object", values=text()),
            "annotations": Node("object", values=text()),
            "finalizers": Node("array", items=text(), list_type="set"),
        },
    )


def root(**fields: Node) -> Node:
    return Node("object", fields={"apiVersion": text(), "kind": text(), "metadata": metadata(), **fields})


def spec(**fields: Node) -> Node:
    return root(spec=Node("object", fields=fields))


class Kind:
    """A kind with several versions. Conversion changes only the apiVersion."""

    def __init__(self, kind: str = "Widget", **versions: Node) -> None:
        self.kind = kind
        self.versions = versions

    def find_schema(self, api_version: str) -> Node | None:
        return self.versions.get(api_version)

    def convert(self, obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        return obj if obj["apiVersion"] == api_version else {**obj, "apiVersion": api_version}

    def build_empty(self, api_version: str) -> dict[str, Any]:
        return {"apiVersion": api_version, "kind": self.kind}


class TrackedObject:
    """One object with its managed fields, which several managers write."""

    def __init__(self, kind: Kind, version: str = "v1") -> None:
        self.kind = kind
        self.version = version
        self.live: dict[str, Any] | None = None
        self.managed: Any = ownership.NO_MANAGED_FIELDS

    def object(self, **fields: Any) -> dict[str, Any]:
        metadata = {"name": "a", **fields.pop("metadata", {})}
        return {"apiVersion": self.version, "kind": self.kind.kind, "metadata": metadata, **fields}

    def apply(self, manager, *, force=False, now=NOW, subresource="", reset=None, **fields) -> Any:
        write = FieldWrite(manager, self.version, self.kind, now, subresource, reset)
        result = ownership.apply(self.live, self.managed, self.object(**fields), write, force=force)
        self.live, self.managed = result.object, result.managed
        self._set_uid()
        return result

    def write(self, manager: str, *, now: str = NOW, subresource: str = "", reset: Any = None, **fields: Any) -> None:
        new = self.object(**fields)
        write = FieldWrite(manager, self.version, self.kind, now, subresource, reset)
        self.managed = ownership.update(self.live, self.managed, new, write)
        self.live = new
        self._set_uid()

    def _set_uid(self) -> None:
        assert self.live is not None
        if "uid" not in self.live["metadata"]:
            self.live = {**self.live, "metadata": {**self.live["metadata"], "uid": "u"}}

    def fields_of(self, manager: str, operation: str = "Apply") -> Any:
        """Return the manager's fieldsV1, or None if it has no entry."""
        for entry in ownership.encode(self.managed):
            if (entry["manager"], entry["operation"]) == (manager, operation):
                return entry["fieldsV1"]
        return None
