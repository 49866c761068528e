"""`Write`: one write request on its way to the store."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fairlead.api.times import rfc3339
from fairlead.server.admission.plugin import CREATE, UPDATE, AdmissionAttributes
from fairlead.server.http.messages import Request
from fairlead.server.http.options import WriteOptions
from fairlead.server.ownership import ManagedFields
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.storage import versions
from fairlead.server.storage.store import ObjectTable
from fairlead.server.storage.stored import Stored
from fairlead.server.write.change_detection import ChangeDetection

if TYPE_CHECKING:
    from fairlead.server.app import Server


class ShownAs(NamedTuple):
    """The kind of a subresource, and the function that builds an object of this kind from the whole object."""

    kind: Resource
    build: Callable[[Object], Object]


@dataclass(slots=True)
class Write:
    """One write request, and the facts that the steps of a write collect about it."""

    server: "Server"
    request: Request
    resource: Resource
    namespace: str
    name: str
    subresource: str
    options: WriteOptions
    changes: ChangeDetection = field(default_factory=ChangeDetection)
    managed: ManagedFields | None = None  # the managed fields of the new object, once they are known
    shown_as: "ShownAs | None" = None  # how admission sees the object of a subresource such as /scale

    @property
    def table(self) -> ObjectTable:
        return self.server.table(self.resource)

    @property
    def stored(self) -> Stored | None:
        """The object as it is stored now, or None if it does not exist."""
        return self.table.get(self.namespace if self.resource.namespaced else "", self.name)

    @property
    def live(self) -> Stored | None:
        """The object as it is now, at the API version of the request, or None if it does not exist."""
        stored = self.stored
        if stored is None:
            return None
        return versions.view(self.resource, versions.expect_readable(self.resource, stored))

    def admission_attributes(self, obj: Object, old: Object | None) -> AdmissionAttributes:
        """Return what the admission chain sees of a create (`old` is None) or an update."""
        name = self.name or (obj.get("metadata") or {}).get("name") or ""
        is_namespace = self.resource.plural == "namespaces" and not self.resource.group
        return AdmissionAttributes(
            CREATE if old is None else UPDATE,
            self.resource,
            self.subresource,
            self.namespace if self.resource.namespaced else name if is_namespace else "",
            name,
            self.shown_as.build(obj) if self.shown_as else obj,
            self.shown_as.build(old) if self.shown_as and old else old,
            self.request,
            self.options.dry_run,
            self.shown_as.kind if self.shown_as else None,
        )

    @property
    def now(self) -> str:
        """The time of the request. It stays the same while the request waits for webhooks."""
        return rfc3339(self.request.time)
