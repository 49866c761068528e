"""Where a controller's objects come from: a kind, perhaps only some of its objects, perhaps in another cluster."""

from dataclasses import dataclass

from fairlead.api import selectors
from fairlead.api.errors import UserError
from fairlead.api.kinds import Kind

HOME = ""
"""The cluster that an operator is run on, as opposed to those it was given by name."""


class DeclarationError(UserError, ValueError):
    """What an operator declares cannot be carried out. One line, with the remedy."""


@dataclass(frozen=True, slots=True)
class Source:
    """What `select` answers. A bare kind means all of its objects, at home."""

    kind: Kind
    labels: str | None = None
    fields: str | None = None
    cluster: str = HOME


def select(kind: Kind, *, labels: str | None = None, fields: str | None = None, cluster: str = HOME) -> Source:
    """Some objects of a kind, for `@op.reconcile`, `owns=` and `watches=`: the server sends no others.

    - `labels`, `fields`: selectors as kubectl takes them (`"app=web,tier!=test"`, `"spec.nodeName=n1"`). To a reader of
      the local view, what is not selected is not there.
    - `cluster`: the name of another cluster that the operator is given when it runs; in `watches=` only.
    """
    if labels:
        selectors.parse_labels(labels)
    if fields:
        selectors.parse_fields(fields)
    return Source(kind, labels or None, fields or None, cluster)


def source_of(kind: Kind | Source) -> Source:
    return kind if isinstance(kind, Source) else Source(kind)
