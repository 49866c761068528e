"""Pausing: an annotation with which a user stops all work on one object."""

from fairlead.api.objects import Object

PAUSED_ANNOTATION = "fairlead.dev/paused"
PAUSED_NOTE = f"Nothing is reconciled or cleaned up until the annotation {PAUSED_ANNOTATION} is removed"


def is_paused(obj: Object) -> bool:
    """Whether the annotation is set. Every value but "false" pauses: a misspelt "true" must not let the work go on."""
    value = obj.annotations.get(PAUSED_ANNOTATION)
    return value is not None and value != "false"
