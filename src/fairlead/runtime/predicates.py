"""Predicates: functions that see the old and the new object of an update, and decide whether it reconciles anything."""

import logging

from fairlead.api.objects import Object
from fairlead.cache import Change, Handler
from fairlead.runtime.handlers import name_of
from fairlead.runtime.pausing import is_paused
from fairlead.runtime.sources import ChangePredicate


def generation_changed(old: Object, new: Object) -> bool:
    """Return whether the desired state changed: for `fl.select(kind, when_changed=fl.generation_changed)`.

    The server increases the generation when the spec changes, and not when only the status, labels or annotations do.
    Objects of some kinds, such as ConfigMap and Secret, have no generation. They count as changed if anything outside
    their metadata and status changed.

    Example:
        @op.reconcile(fl.select(Website, when_changed=fl.generation_changed))
        async def serve(site: fl.Object, ctx: fl.Context) -> None: ...
    """
    before, after = old.metadata.get("generation"), new.metadata.get("generation")
    if before is not None or after is not None:
        return before != after
    return _without_metadata_and_status(old) != _without_metadata_and_status(new)


def _without_metadata_and_status(obj: Object) -> dict[str, object]:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def filter_changes(predicate: ChangePredicate | None, handler: Handler, log: logging.Logger) -> Handler:
    """Return a handler that ignores the updates for which the predicate returns False.

    Guarantees: creations, deletions, the initial list, and every update of an object that is being deleted reach the
    handler, so no clean-up is missed. So does an update that pauses or resumes the object. If the predicate raises, the
    update reaches the handler; the first exception is logged with its traceback.
    """
    if predicate is None:
        return handler
    has_logged = False

    def handle(change: Change) -> None:
        nonlocal has_logged
        if change.old is not None and change.new is not None and not change.initial:
            old, new = change.old.object(), change.new.object()
            try:
                is_pause = is_paused(old) != is_paused(new)
                if not new.deleting and not is_pause and not predicate(old, new):
                    return
            except Exception:
                if not has_logged:
                    has_logged = True
                    log.exception(
                        "the when_changed= function %s raised for %s %s/%s: the update counts as a change, and so does "
                        "each further one for which the function raises (not logged again)",
                        name_of(predicate),
                        new.kind,
                        change.namespace,
                        change.name,
                    )
        handler(change)

    return handle
