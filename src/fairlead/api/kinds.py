"""Kinds: what an object is called and under which path a server keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fairlead.api.objects import Object


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object at one API version.

    Calling it builds a payload: `ConfigMap("greeting", data={"text": "hello"})`. Two Kinds are the same kind when
    group, version and kind agree; `plural` and `namespaced` are what discovery settles.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        """(apiVersion, kind): what tells kinds apart."""
        return self.api_version, self.kind

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The request path. Without a namespace, a namespaced kind's collection is that of all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        elif name and self.namespaced:
            raise ValueError(f"{self.kind} {name!r} needs a namespace: the kind is namespaced")
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)

    def __call__(
        self,
        name: str | None = None,
        namespace: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Object:
        """A new object of this kind with just what was given."""
        metadata: dict[str, Any] = {}
        given = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
        for key, value in given.items():
            if value is not None:
                metadata[key] = dict(value) if isinstance(value, Mapping) else value
        return Object({"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **fields})

    def __str__(self) -> str:
        return f"{self.kind}.{self.version}.{self.group}" if self.group else self.kind


def kind(api_version: str, kind: str, plural: str | None = None, namespaced: bool = True) -> Kind:
    """Declare a kind. `plural` and `namespaced` are guesses until a server's discovery settles them."""
    group, _, version = api_version.rpartition("/")
    if not version or not kind:
        raise ValueError(f"a kind needs an apiVersion and a kind, got {api_version!r} and {kind!r}")
    return Kind(group, version, kind, plural or guess_plural(kind), namespaced)


def guess_plural(kind: str) -> str:
    """The plural that Kubernetes itself would guess: ingresses, policies, gateways, endpoints."""
    lower = kind.lower()
    if lower == "endpoints":
        return lower
    if lower.endswith(("s", "x", "ch", "sh")):
        return lower + "es"
    if lower.endswith("y") and lower[-2:-1] not in tuple("aeiou"):
        return lower[:-1] + "ies"
    return lower + "s"
