"""Delete the children of an owner that the controller no longer applies."""

from collections.abc import Iterable

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.writes.delete import delete
from fairlead.writes.errors import ObjectChanged
from fairlead.writes.writer import Writer, object_key

# Their deletion destroys data or credentials that an apply cannot bring back.
_ONLY_IF_NAMED = frozenset(
    {
        ("", "PersistentVolumeClaim"),
        ("", "Namespace"),
        ("", "Secret"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)


def must_be_named(kind: Kind) -> bool:
    """Whether a statement that prunes every owned kind leaves this kind: only its name makes the deletion intended."""
    return kind.group_kind in _ONLY_IF_NAMED


async def prune(
    writer: Writer, owner: Object, kind: Kind, children: Iterable[Object], keep: Iterable[tuple[str | None, str]]
) -> list[Object]:
    """Delete the children of `owner` that we created and that are not in `keep`. Return the deleted children.

    `children` are candidates of one kind. `keep` contains (namespace, name) of each child that must stay. Call this
    only when `keep` is complete.

    Guarantees:
        A child is deleted only if the owner's uid is among its owner references and it has an Apply entry of our field
        manager. Anyone could have set an owner reference alone.
        The delete has the child's uid and resourceVersion as preconditions. A child that changed meanwhile stays until
        the next call.

    Does not guarantee:
        Children that are not in `children`, because the cache lags, are not deleted.
    """
    pruned = []
    for child in find_unneeded(writer, owner, kind, children, keep):
        try:
            await delete(writer, kind, child, unchanged=True, propagation="Background")
        except ObjectChanged:
            continue
        pruned.append(child)
    return pruned


def find_unneeded(
    writer: Writer, owner: Object, kind: Kind, children: Iterable[Object], keep: Iterable[tuple[str | None, str]]
) -> list[Object]:
    """Return the children of `owner` that we created and that are not in `keep`: those that `prune` deletes."""
    keep_keys = {object_key(kind, name, namespace) for namespace, name in keep}
    unneeded = []
    for child in children:
        is_needed = object_key(kind, child.name, child.namespace) in keep_keys
        if is_needed or child.deleting or not is_own_child(writer, owner, child):
            continue
        unneeded.append(child)
    return unneeded


def is_own_child(writer: Writer, owner: Object, child: Object) -> bool:
    """Return whether this writer created the child for that owner."""
    has_owner = any(ref.get("uid") == owner.uid for ref in child.metadata.get("ownerReferences") or ())
    return has_owner and writer.has_applied(child)
