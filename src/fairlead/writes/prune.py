"""Children no longer wanted."""

from collections.abc import Iterable

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.writes.delete import delete
from fairlead.writes.errors import ObjectChanged
from fairlead.writes.writer import Writer, key_of


async def prune(
    writer: Writer, owner: Object, kind: Kind, children: Iterable[Object], keep: Iterable[tuple[str | None, str]]
) -> list[Object]:
    """Delete those of `children` (of one declared kind) that are ours and not in `keep`, (namespace, name) each.

    Ours means both: the owner's uid among the owner references, and an Apply entry of our field manager. An owner
    reference alone can be anyone's doing. Call it only after a reconcile that returned normally: `keep` is complete
    only then. Guard: uid and resourceVersion; a child that changed meanwhile is left for the next pass.
    """
    kept = {key_of(kind, name, namespace) for namespace, name in keep}
    pruned = []
    for child in children:
        wanted = key_of(kind, child.name, child.namespace) in kept
        if wanted or child.deleting or not is_ours(writer, owner, child):
            continue
        try:
            await delete(writer, kind, child, unchanged=True, propagation="Background")
        except ObjectChanged:
            continue
        pruned.append(child)
    return pruned


def is_ours(writer: Writer, owner: Object, child: Object) -> bool:
    """Whether this writer made the child for that owner."""
    owned = any(ref.get("uid") == owner.uid for ref in child.metadata.get("ownerReferences") or ())
    return owned and writer.applied(child)
