"""Schemas for the tests of ownership: a built-in kind and a small custom one."""

from typing import Any

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
    """Schemas of one kind whose versions differ in nothing but their name and node."""

    def __init__(self, kind: str = "Widget", **versions: Node) -> None:
        self.kind = kind
        self.versions = versions

    def node(self, api_version: str) -> Node | None:
        return self.versions.get(api_version)

    def convert(self, obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        return obj if obj["apiVersion"] == api_version else {**obj, "apiVersion": api_version}

    def empty(self, api_version: str) -> dict[str, Any]:
        return {"apiVersion": api_version, "kind": self.kind}


class Story:
    """One object and what its writers do to it."""

    def __init__(self, schemas: Kind, version: str = "v1") -> None:
        from fairlead.server import ownership

        self.ownership = ownership
        self.schemas = schemas
        self.version = version
        self.live: dict[str, Any] | None = None
        self.managed: Any = ownership.NOTHING

    def object(self, **parts: Any) -> dict[str, Any]:
        metadata = {"name": "a", **parts.pop("metadata", {})}
        return {"apiVersion": self.version, "kind": self.schemas.kind, "metadata": metadata, **parts}

    def apply(self, manager, *, force=False, now=NOW, subresource="", reset=None, **parts) -> Any:
        made = self.ownership.apply(
            self.live, self.managed, self.object(**parts), manager=manager, force=force, api_version=self.version,
            subresource=subresource, schemas=self.schemas, reset=reset, now=now,
        )  # fmt: skip
        self.live, self.managed = made.object, made.managed
        self._exist()
        return made

    def write(self, manager: str, *, now: str = NOW, subresource: str = "", reset: Any = None, **parts: Any) -> None:
        new = self.object(**parts)
        self.managed = self.ownership.update(
            self.live, self.managed, new, manager=manager, api_version=self.version, subresource=subresource,
            schemas=self.schemas, reset=reset, now=now,
        )  # fmt: skip
        self.live = new
        self._exist()

    def _exist(self) -> None:
        assert self.live is not None
        if "uid" not in self.live["metadata"]:
            self.live = {**self.live, "metadata": {**self.live["metadata"], "uid": "u"}}

    def owns(self, manager: str, operation: str = "Apply") -> Any:
        found = [
            e for e in self.ownership.encode(self.managed) if (e["manager"], e["operation"]) == (manager, operation)
        ]
        return found[0]["fieldsV1"] if found else None
