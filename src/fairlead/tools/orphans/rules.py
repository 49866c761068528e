"""Orphan rules: which downstream objects are copies, and which upstream objects are their parents."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.identity import Identity, IdentityLabels, UnreadableIdentity

# What a request path can contain. The server checks the rest.
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.:_]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, order=True)
class Parent:
    """An upstream object that a downstream copy depends on. `namespace` is "" for cluster-scoped kinds."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class KeepObject(Exception):
    """Raised by a rule for an object that must never be deleted. The message names the reason."""


Parents = Callable[[Object, Identity], Iterable[Parent]]
"""Returns every parent of a copy; without parents it is not an orphan. May raise KeepObject or UnreadableIdentity."""


@dataclass(frozen=True, slots=True)
class References:
    """A function that returns the parents of a copy from the references at a field path, such as parentRefs.

    A reference has the fields group, kind, namespace and name. `group` and `kind` are the defaults of the first two.
    The default namespace is `namespace`, or that of the original. A reference to a kind that is neither `kind` nor in
    `judged` keeps the copy.
    """

    path: str
    group: str
    kind: str
    namespace: str | None = None
    judged: frozenset[tuple[str, str]] = frozenset()  # (group, kind) that are judged besides this one

    def __call__(self, obj: Object, identity: Identity) -> Iterator[Parent]:
        default = self.namespace if self.namespace is not None else identity.namespace
        for reference in _walk(obj, self.path.split(".")):
            if not isinstance(reference, Mapping) or not isinstance(reference.get("name"), str):
                raise UnreadableIdentity(f"{self.path} contains something that is not a reference")
            reference_fields = {key: reference.get(key) for key in ("group", "kind", "namespace")}
            if any(value is not None and not isinstance(value, str) for value in reference_fields.values()):
                raise UnreadableIdentity(f"{self.path} contains something that is not a reference")
            group = self.group if reference_fields["group"] is None else str(reference_fields["group"])
            kind = str(reference_fields["kind"] or self.kind)
            parent = Parent(group, kind, str(reference_fields["namespace"] or default), str(reference["name"]))
            if (group, kind) not in {(self.group, self.kind), *self.judged}:
                raise KeepObject(f"{parent} is a parent of a kind that this rule does not know")
            yield parent


def upstream_object(obj: Object, identity: Identity) -> Iterator[Parent]:
    """Yield the only parent of a copy: the original that its labels name."""
    yield Parent(identity.group, identity.kind, identity.namespace, identity.name)


def combine_parents(*functions: Parents) -> Parents:
    """Return a function that yields the parents from all of the given functions."""

    def parents(obj: Object, identity: Identity) -> Iterator[Parent]:
        for function in functions:
            yield from function(obj, identity)

    return parents


@dataclass(frozen=True, slots=True)
class Candidate:
    """A downstream object that a rule selects, with the fields that `judge` needs."""

    rule: "OrphanRule"
    namespace: str | None
    name: str
    uid: str
    resource_version: str
    cluster: str = ""
    parents: tuple[Parent, ...] = ()
    kept: str = ""  # Why it stays, whatever its parents.
    unreadable: str = ""  # Why it cannot be judged.

    def __str__(self) -> str:
        qualified_name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.rule.kind.kind} {qualified_name}"


@dataclass(frozen=True, slots=True)
class OrphanRule:
    """A rule that selects downstream copies. An object without the label for the cluster name is never selected.

    A selected object has the `labels` of the rule and a name that starts with `name_prefix`. It is an orphan after all
    its parents have been absent for `grace` seconds. `cap` limits the deletions of one run.
    """

    name: str
    kind: Kind
    parents: Parents
    labels: Mapping[str, str] = field(default_factory=dict)
    name_prefix: str = ""
    identity: IdentityLabels = field(default_factory=IdentityLabels)
    # As in the original: a controller that recreates an object has finished by then, and no alert is due yet.
    grace: float = 300.0
    cap: Cap = field(default_factory=Cap.default)

    @property
    def selector(self) -> str:
        """The label selector with which the copies are listed."""
        return ",".join([self.identity.cluster, *(f"{key}={value}" for key, value in self.labels.items())])

    def candidate(self, obj: Object) -> Candidate | None:
        """Return the Candidate of an object that the rule selects, or None for any other object."""
        labels = obj.labels
        is_selected = self.identity.cluster in labels and all(labels.get(k) == v for k, v in self.labels.items())
        if not is_selected or not obj.name.startswith(self.name_prefix):
            return None
        cluster, keep_reason, unreadable = "", "", ""
        parents: tuple[Parent, ...] = ()
        try:
            identity = self.identity.read(labels)
            cluster = identity.cluster
            parents = tuple(sorted(set(self.parents(obj, identity))))
            for parent in parents:
                if not _NAME.fullmatch(parent.name) or (parent.namespace and not _NAME.fullmatch(parent.namespace)):
                    raise UnreadableIdentity(f"names a parent that cannot exist: {parent}")
        except KeepObject as decision:
            keep_reason = str(decision)
        except UnreadableIdentity as problem:
            unreadable = str(problem)
        except Exception as error:  # A rule may be a user's program. If it fails, nothing is known.
            unreadable = f"makes rule {self.name} fail: {type(error).__name__}: {error}"
        if obj.deleting:
            keep_reason = "it is already being deleted"
        elif not parents and not unreadable:
            keep_reason = keep_reason or "it has no parent"
        return Candidate(
            self, obj.namespace, obj.name, obj.uid, obj.resource_version, cluster, parents, keep_reason, unreadable
        )


def _walk(value: Any, path: list[str]) -> Iterator[Any]:
    """Yield the values at a field path. A list on the path yields the values of all its items."""
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, path)
    elif not path:
        if value is not None:
            yield value
    elif isinstance(value, Mapping):
        yield from _walk(value.get(path[0]), path[1:])
