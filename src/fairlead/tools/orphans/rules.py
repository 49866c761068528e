"""Rules: what is collected, whose copy it is, and which parents must be gone for it to go."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.tools.orphans.caps import Cap
from fairlead.tools.orphans.identity import Identity, Labels, Unreadable

# What can stand in a request's path; stricter forms are the server's business.
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.:_]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, order=True)
class Parent:
    """An object upstream that keeps a copy downstream alive. `namespace` is "" for cluster-scoped kinds."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Keep(Exception):
    """The object stays, whatever became of its parents. The message says why."""


Parents = Callable[[Object, Identity], Iterable[Parent]]
"""Every parent of a copy; it is an orphan when all are gone, and none at all is no orphan. May raise `Keep` for an
object that is not to be judged, `Unreadable` for one that cannot be."""


@dataclass(frozen=True, slots=True)
class References:
    """The parents that references at a field path name: {group, kind, namespace, name}, as a Gateway API parentRef.

    A reference that leaves something out means this group and kind, and the namespace of the upstream object unless
    another is given here. One to a kind that is not judged keeps the object.
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
                raise Unreadable(f"{self.path} holds something that is no reference")
            said = {word: reference.get(word) for word in ("group", "kind", "namespace")}
            if any(value is not None and not isinstance(value, str) for value in said.values()):
                raise Unreadable(f"{self.path} holds something that is no reference")
            group = self.group if said["group"] is None else str(said["group"])
            kind = str(said["kind"] or self.kind)
            parent = Parent(group, kind, str(said["namespace"] or default), str(reference["name"]))
            if (group, kind) not in {(self.group, self.kind), *self.judged}:
                raise Keep(f"{parent} is a parent of a kind that this rule does not judge")
            yield parent


def itself(obj: Object, identity: Identity) -> Iterator[Parent]:
    """The one parent is the upstream object that the labels name."""
    yield Parent(identity.group, identity.kind, identity.namespace, identity.name)


def together(*several: Parents) -> Parents:
    """The parents that any of these finds."""

    def parents(obj: Object, identity: Identity) -> Iterator[Parent]:
        for each in several:
            yield from each(obj, identity)

    return parents


@dataclass(frozen=True, slots=True)
class Candidate:
    """A downstream object that a rule selects, with what the judgement needs of it and no more."""

    rule: "Rule"
    namespace: str | None
    name: str
    uid: str
    resource_version: str
    cluster: str = ""
    parents: tuple[Parent, ...] = ()
    kept: str = ""  # why it stays, whatever its parents
    unreadable: str = ""  # why it cannot be judged

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.rule.kind.kind} {where}"


@dataclass(frozen=True, slots=True)
class Rule:
    """What is collected. Objects without the cluster label are never selected.

    `labels` must be equal on each object, its name must begin with `name_prefix`. `grace` is how long all its parents
    must have been absent; `cap` bounds how many may go in one run.
    """

    name: str
    kind: Kind
    parents: Parents
    labels: Mapping[str, str] = field(default_factory=dict)
    name_prefix: str = ""
    identity: Labels = field(default_factory=Labels)
    # As long as the original waited: a controller that deletes and makes anew is done by then, an alert is not yet due.
    grace: float = 300.0
    cap: Cap = field(default_factory=Cap.default)

    @property
    def selector(self) -> str:
        """What the server is asked for."""
        return ",".join([self.identity.cluster, *(f"{key}={value}" for key, value in self.labels.items())])

    def candidate(self, obj: Object) -> Candidate | None:
        """What the judgement needs of the object; None when the rule does not select it."""
        labels = obj.labels
        selected = self.identity.cluster in labels and all(labels.get(k) == v for k, v in self.labels.items())
        if not selected or not obj.name.startswith(self.name_prefix):
            return None
        cluster, kept, unreadable = "", "", ""
        parents: tuple[Parent, ...] = ()
        try:
            identity = self.identity.read(labels)
            cluster = identity.cluster
            parents = tuple(sorted(set(self.parents(obj, identity))))
            for parent in parents:
                if not _NAME.fullmatch(parent.name) or (parent.namespace and not _NAME.fullmatch(parent.namespace)):
                    raise Unreadable(f"names a parent that no server can hold: {parent}")
        except Keep as keep:
            kept = str(keep)
        except Unreadable as problem:
            unreadable = str(problem)
        except Exception as error:  # a rule is someone's program: where it fails, nothing is known
            unreadable = f"makes rule {self.name} fail: {type(error).__name__}: {error}"
        if obj.deleting:
            kept = "it is being deleted already"
        elif not parents and not unreadable:
            kept = kept or "it names no parent, so none of its parents is gone"
        return Candidate(
            self, obj.namespace, obj.name, obj.uid, obj.resource_version, cluster, parents, kept, unreadable
        )


def _walk(value: Any, path: list[str]) -> Iterator[Any]:
    """What stands at the path; lists on the way, and at its end, are walked through."""
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, path)
    elif not path:
        if value is not None:
            yield value
    elif isinstance(value, Mapping):
        yield from _walk(value.get(path[0]), path[1:])
