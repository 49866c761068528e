"""Kinds of objects: group, version, kind and plural, and the request path that they determine."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fairlead.api.errors import UserError
from fairlead.api.objects import Object


class PayloadError(UserError, TypeError):
    """A call such as `fl.ConfigMap("x", dta={…})` names a field that the kind does not have.

    The message starts with the file and line of that call. Fix the name of the keyword argument.
    """


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object at one API version.

    Call the kind to build a payload: a plain dict that contains exactly the fields of the call.

    Guarantees: for a built-in kind, an unknown top-level field raises `PayloadError`. Fields of custom kinds, and the
    content of fields, are validated by the server.

    Example:
        fl.ConfigMap("greeting", data={"text": "hello"})
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    fields: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The top-level fields beside metadata, or nothing if they are not known."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        """The pair (apiVersion, kind), which identifies the kind, such as ("apps/v1", "Deployment").

        `plural` and `namespaced` are not part of the key: they may be guesses until discovery.
        """
        return self.api_version, self.kind

    @property
    def group_kind(self) -> tuple[str, str]:
        """(group, kind), which identifies the kind in all of its versions."""
        return self.group, self.kind

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of a request, such as `/apis/apps/v1/namespaces/default/deployments/web`.

        Without `namespace` and `name`, the path is that of all objects of the kind.

        Raises: ValueError if `name` is set, the kind is namespaced and `namespace` is not set.
        """
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
        """Return a new object of this kind that contains exactly the fields of the call.

        Raises: PayloadError if this is a built-in kind and one of the fields does not exist in it.
        """
        if self.fields and (unknown := fields.keys() - self.fields - {"metadata"}):
            raise self._build_unknown_field_error(min(unknown))
        metadata: dict[str, Any] = {}
        arguments = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
        for key, value in arguments.items():
            if value is not None:
                metadata[key] = dict(value) if isinstance(value, Mapping) else value
        return Object({"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **fields})

    def _build_unknown_field_error(self, name: str) -> PayloadError:
        from fairlead.api.source_locations import caller_location, with_location  # Only an error needs it.

        similar = difflib.get_close_matches(name, self.fields, 1)
        hint = f"did you mean {similar[0]}?" if similar else f"it has {', '.join(sorted(self.fields))}"
        return PayloadError(with_location(caller_location(), f"{self.kind} has no field {name}: {hint}"))

    def __str__(self) -> str:
        return f"{self.kind}.{self.version}.{self.group}" if self.group else self.kind


def kind(api_version: str, kind: str, plural: str | None = None, namespaced: bool = True) -> Kind:
    """Declare a kind, usually a custom one.

    `plural` and `namespaced` are guesses that discovery corrects when the operator talks to a server.

    Raises: ValueError if the apiVersion or the kind is empty.

    Example:
        Greeting = fl.kind("example.com/v1", "Greeting")
    """
    group, _, version = api_version.rpartition("/")
    if not version or not kind:
        raise ValueError(f"a kind needs an apiVersion and a kind, got {api_version!r} and {kind!r}")
    return Kind(group, version, kind, plural or guess_plural(kind), namespaced)


def guess_plural(kind: str) -> str:
    """Return the plural that Kubernetes would guess for a kind: ingresses, policies, gateways, endpoints."""
    lower = kind.lower()
    if lower == "endpoints":
        return lower
    if lower.endswith(("s", "x", "ch", "sh")):
        return lower + "es"
    if lower.endswith("y") and lower[-2:-1] not in tuple("aeiou"):
        return lower[:-1] + "ies"
    return lower + "s"
