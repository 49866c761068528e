"""`Resource`: the names, schema, flags and hooks of one served kind, built-in or custom."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from fairlead.server.authentication.users import User
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.nodes import Node

Object = dict[str, Any]
MetadataRepetition = Literal["twice", "once", "loosely", "as new", "as new twice", "never"]
"""How often a kind's validation of an update reports the errors of the metadata again.

The server has validated the metadata before. `loosely` leaves out the finalizers, `as new` validates as on create.
"""


class Converter(Protocol):
    """Converts custom resources between the versions of their kind."""

    def convert(self, objects: list[Object], api_version: str) -> list[Object]:
        """Return the objects at another version. Raises StatusError, or WebhookCallNeeded until it has an answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One served kind at one version.

    The flags are the decisions of a real server's strategies. The hooks are optional, and pure except for `prepare_*`
    and `set_update_time`, which change their first argument. That argument and its metadata are copies that a hook may
    change; a hook replaces deeper values and never changes them.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    schema: Node
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    storage_version_hash: str = ""
    custom: bool = False  # from a CRD: pruned, defaulted and validated by its schema; no strategic merge patch
    has_status: bool = False  # has /status: other writes ignore the status, and /status ignores the rest
    status_immutable_metadata: tuple[str, ...] = ()  # the metadata fields that /status cannot change
    scale: Any = None  # the paths behind /scale, or None
    has_generation: bool = False
    generation_fields: tuple[str, ...] = ("spec",)  # the fields whose changes start a new generation
    generation_counts_empty: bool = False  # a new empty list or map does so too, although it is not stored
    validates_empty: bool = False  # validation distinguishes an empty list or map from an absent one
    allows_unconditional_update: bool = True  # allows PUT without a resourceVersion
    metadata_repetition: MetadataRepetition = "twice"
    status_metadata_repetition: MetadataRepetition = "once"
    bytes_differ: Callable[[Object], bool] | None = None  # of a new object: see server.write.change_detection
    creates_on_update: bool = False  # PUT to a missing name creates
    delete_returns_object: bool = False  # DELETE returns the object instead of a Status
    deprecation: str = ""  # the warning of every response
    columns: Any = None  # the additionalPrinterColumns of a custom resource
    selectable: tuple[str, ...] = ()  # field selectors besides metadata.name and metadata.namespace
    storage: "Resource | None" = field(default=None, repr=False)  # the storage version, if not this one
    convert: Callable[[Object], Object] | None = None  # of a built-in kind: converts an object of the other version
    converter: Converter | None = field(default=None, repr=False)  # the conversion webhook of a custom resource
    definition: Any = field(default=None, repr=False)  # the CRD of a custom resource
    default: Callable[[Object], Object] | None = None  # returns the object with its defaults: the same, or a copy
    reset_fields: tuple[str, ...] = ()  # the fields that an update never changes: no manager owns them
    prepare_for_user: Callable[[Object, User], None] | None = None  # sets who created the object
    prepare_create: Callable[[Object], None] | None = None
    prepare_update: Callable[[Object, Object], None] | None = None
    set_update_time: Callable[[Object, Object, str], None] | None = None  # sets the time of a change
    validate: Callable[[Object, Object | None], list[FieldError]] | None = None  # (new, old or None)
    validate_status: Callable[[Object, Object | None], list[FieldError]] | None = None  # on /status
    warn: Callable[[Object, Object | None], list[str]] | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_definition(self) -> bool:
        """Whether this is the kind CustomResourceDefinition."""
        return (self.group, self.plural) == ("apiextensions.k8s.io", "customresourcedefinitions")

    @property
    def group_resource(self) -> str:
        """The kind's name in error messages: configmaps, deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
