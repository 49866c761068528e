"""`AdmissionPlugin`, the base class of admission plugins, and `AdmissionAttributes`, the write they decide about."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fairlead.server.authentication.users import User
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import StatusError, forbidden
from fairlead.server.http.messages import Request
from fairlead.server.registry.resource import Object, Resource

if TYPE_CHECKING:
    from fairlead.server.app import Server

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
CONNECT: Final = "CONNECT"


@dataclass(slots=True)
class AdmissionAttributes:
    """One write as the admission plugins see it.

    A plugin changes a write by assigning a new dict to `object`. It never changes the dict itself.
    """

    operation: str  # CREATE, UPDATE, DELETE or CONNECT
    resource: Resource
    subresource: str  # "" for the object itself
    namespace: str  # "" for a cluster-scoped resource
    name: str  # "" if the server generates it, and for each object of a deletecollection
    object: Object | None  # the new object; None for a DELETE
    old: Object | None  # the live object; None for a CREATE
    request: Request
    dry_run: bool
    kind: Resource | None = None  # the kind of `object`, if it is not that of `resource`: Scale, Eviction
    should_reinvoke: bool = False  # a webhook or policy changed the object, so that all plugins run a second time
    is_reinvocation: bool = False  # this is the second time
    state: dict[str, Any] = field(default_factory=dict)  # what plugins remember until the second time, by their names

    @property
    def user(self) -> User:
        return self.request.user

    def kind_at(self, resource: Resource) -> dict[str, str]:
        """Return group, version and kind of the object, if the write is seen as one of `resource`."""
        kind = self.kind or resource
        return {"group": kind.group, "version": kind.version, "kind": kind.kind}

    def warn(self, text: str) -> None:
        """Add a warning to the response."""
        self.request.warn(text)

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation to the audit event of the request. The first value of a key counts."""
        self.request.audit_annotations.setdefault(key, value)

    def forbid(self, message: str, errors: "tuple[FieldError, ...]" = ()) -> StatusError:
        """Return the 403 with which most plugins reject a write. It names the object, or else its generateName."""
        metadata = (self.object or {}).get("metadata") or {}
        return forbidden(
            self.resource, metadata.get("name") or metadata.get("generateName") or self.name, message, errors
        )


class AdmissionPlugin:
    """One step of the admission chain. A subclass sets the class attributes, and overrides `admit`, `validate` or both.

    The chain calls `admit` before the object is prepared and validated, and `validate` afterwards.
    """

    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE)
    resources: ClassVar[frozenset[tuple[str, str]] | None] = None  # group and plural; None for all resources
    subresources: ClassVar[tuple[str, ...] | None] = ("",)  # None for all subresources

    def __init__(self, server: "Server") -> None:
        self.server = server

    @property
    def is_dynamic(self) -> bool:
        """Whether stored objects, such as webhook configurations, make this plugin see writes that change nothing."""
        return False

    def handles(self, operation: str, resource: Resource, subresource: str) -> bool:
        """Return whether the chain calls this plugin for such writes. The chain asks once and remembers the answer."""
        return (
            operation in self.operations
            and (self.resources is None or (resource.group, resource.plural) in self.resources)
            and (self.subresources is None or subresource in self.subresources)
        )

    def admit(self, attributes: AdmissionAttributes) -> None:
        """Change `attributes.object`, or raise StatusError to reject the write."""

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise StatusError to reject the write. The object is valid and cannot change any more."""

    def list_stored(self, group: str, plural: str, namespace: str = "") -> Iterator[Object]:
        """Yield the stored objects of a resource in a namespace. They have the storage version."""
        return (stored.object for _, stored in self.server.store.table(group, plural).scan(namespace))
