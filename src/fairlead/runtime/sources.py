"""The sources of a controller's objects: a kind, optionally with selectors, optionally in another cluster."""

from dataclasses import dataclass

from fairlead.api import selectors
from fairlead.api.errors import UserError
from fairlead.api.kinds import Kind

HOME = ""
"""The name of the cluster that the operator runs on, as opposed to the named ones of `clusters=`."""


class DeclarationError(UserError, ValueError):
    """A declaration of an operator cannot work.

    The message is one line with the file and line of the user's code, if known, and the remedy.
    """


@dataclass(frozen=True, slots=True)
class Source:
    """What a controller watches; `select` returns one. A kind alone means all of its objects in the own cluster."""

    kind: Kind
    labels: str | None = None
    fields: str | None = None
    cluster: str = HOME


def select(kind: Kind, *, labels: str | None = None, fields: str | None = None, cluster: str = HOME) -> Source:
    """Select some objects of a kind, for `@op.reconcile`, `owns=` and `watches=`.

    - `labels`, `fields`: selectors as kubectl takes them (`"app=web,tier!=test"`, `"spec.nodeName=n1"`).
    - `cluster`: the name of another cluster of the run (`clusters=`). Only for `watches=`.

    Guarantees: the server sends only matching objects, and reads from the cache return only those.

    Raises: ValueError if a selector cannot be parsed.

    Example:
        @op.reconcile(fl.select(Website, labels="tier=public"))
        async def serve(site: fl.Object, ctx: fl.Context) -> None: ...
    """
    if labels:
        selectors.parse_labels(labels)
    if fields:
        selectors.parse_fields(fields)
    return Source(kind, labels or None, fields or None, cluster)


def source_of(kind: Kind | Source) -> Source:
    """Return the source itself, or the source of all objects of a kind."""
    return kind if isinstance(kind, Source) else Source(kind)
