"""The sources that a controller watches: a kind, with optional selectors, in this or another cluster."""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead.api import selectors
from fairlead.api.errors import UserError
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object

ChangePredicate = Callable[[Object, Object], bool]
"""A function of the old and the new object of an update. False means that the update reconciles nothing."""

HOME = ""
"""The name of the cluster that the operator runs on, as opposed to the named ones of `clusters=`."""


class DeclarationError(UserError, ValueError):
    """The declaration of an operator has a mistake, such as a handler with the wrong arguments.

    The message is one line with the file and line of the user's code, if known, and the fix.
    """


@dataclass(frozen=True, slots=True)
class Source:
    """The objects of a kind that a controller watches, with selectors and a cluster. `select` returns a Source."""

    kind: Kind
    labels: str | None = None
    fields: str | None = None
    cluster: str = HOME
    when_changed: ChangePredicate | None = None
    optional: bool = False


def select(
    kind: Kind,
    *,
    labels: str | None = None,
    fields: str | None = None,
    cluster: str = HOME,
    when_changed: ChangePredicate | None = None,
    optional: bool = False,
) -> Source:
    """Return a Source with some objects of a kind, for `@op.reconcile`, `owns=` and `watches=`.

    - `labels`, `fields`: selectors as kubectl takes them (`"app=web,tier!=test"`, `"spec.nodeName=n1"`).
    - `cluster`: the name of another cluster of the run (`clusters=`). Only for `watches=`.
    - `when_changed`: a predicate, `(old, new)`. Updates for which it returns False reconcile nothing. It must depend on
      the two objects alone. `fl.generation_changed` ignores updates of status and metadata.
    - `optional`: the controller works without the kind. While its CRD is absent, the kind has no objects, and
      `ctx.is_served(kind)` is False. When the CRD appears or disappears, every object of the controller is reconciled.

    Guarantees: the server sends only matching objects, and reads from the cache return only those. The predicate does
    not apply to creations, to deletions, to updates of an object that is being deleted, to the objects that exist at
    the start, and to resyncs, so it cannot hide a clean-up. Reads show each update, also if the predicate ignores it.
    If the predicate raises, the update counts as a change, and the first exception is logged.

    Does not guarantee: that the predicate sees each update by itself. Two updates that a watch missed are one.

    Raises: ValueError if a selector cannot be parsed.

    Example:
        @op.reconcile(fl.select(Website, labels="tier=public"))
        async def serve(site: fl.Object, ctx: fl.Context) -> None: ...
    """
    if labels:
        selectors.parse_labels(labels)
    if fields:
        selectors.parse_fields(fields)
    return Source(kind, labels or None, fields or None, cluster, when_changed, optional)


def source_of(kind: Kind | Source) -> Source:
    """Return a Source unchanged, and for a kind the Source with all of its objects."""
    return kind if isinstance(kind, Source) else Source(kind)
