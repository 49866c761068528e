"""Who owns which field: managedFields as each write leaves them."""

from typing import TYPE_CHECKING

from fairlead.server.store import Object, Stored

if TYPE_CHECKING:
    from fairlead.server.pipeline import Write


class Tracking:
    """Settles metadata.managedFields of what is written."""

    def created(self, write: "Write", obj: Object) -> Object:
        return obj

    def updated(self, write: "Write", live: Stored, obj: Object) -> Object:
        return obj

    def times_kept(self, obj: Object, old: Object) -> Object:
        """The object with its entries' old times where nothing but those times changed."""
        return obj
