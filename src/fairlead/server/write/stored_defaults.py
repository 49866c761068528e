"""Fill the defaults of custom objects that a real server stores without them.

A real server adds these defaults when it reads the object. This server keeps the object as clients read it, so a create
or update adds them before it stores the object.
"""

from typing import TYPE_CHECKING

from fairlead.server.storage import versions
from fairlead.server.storage.stored import Object
from fairlead.server.write.decoding import fill_defaults

if TYPE_CHECKING:
    from fairlead.server.write.write_request import Write


def fill_new_status(write: "Write", obj: Object) -> Object:
    """Return a new object with the defaults of its status.

    A real server reads these defaults, but does not store them with a new object. The next write stores them.
    """
    if write.options.dry_run or "status" not in (defaulted := fill_defaults(write.resource, obj)):
        return obj
    write.changes.bytes_differ = True
    return defaulted


def fill_after_scale(write: "Write", obj: Object) -> Object:
    """Return an object that was written through /scale with the defaults of its spec.

    A real server stores an object that has no spec without these defaults, and reads it with them.
    """
    resource, changes = write.resource, write.changes
    if not resource.custom or write.subresource != "scale" or resource.storage is not None:
        return obj
    defaulted = fill_defaults(resource, obj)
    changes.bytes_differ = changes.bytes_differ or defaulted != obj
    return defaulted


def fill_after_version_change(write: "Write", obj: Object) -> Object:
    """Return an object with the defaults of the storage version.

    An object that was stored at an earlier storage version still has the defaults of that version.
    """
    resource = write.resource
    if not resource.custom or resource.storage is not None or versions.is_current(resource, write.stored):
        return obj
    return fill_defaults(resource, obj)
