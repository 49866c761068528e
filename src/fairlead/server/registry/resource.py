"""A Resource: everything the verbs need to know of one served kind, built-in or custom."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlead.server.authentication.users import User
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.nodes import Node

Object = dict[str, Any]
Retold = Literal["twice", "once", "loosely", "as new", "as new twice", "never"]
"""How a kind's own validation of an update tells of the metadata, which all have told of before."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One served kind at one version.

    The flags are what a real server's strategies decide. The hooks are optional and pure, save that `prepare_*` change
    the object they are given first: it and its metadata are fresh copies, anything deeper must be replaced whole.
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
    custom: bool = False  # a CRD's: prune, default and validate by schema; no strategic merge
    status: bool = False  # has /status, so the main path ignores status and the other way round
    status_keeps: tuple[str, ...] = ()  # what of a built-in object's metadata /status may not change
    scale: Any = None  # the paths behind /scale, or None
    has_generation: bool = False
    generation_of: tuple[str, ...] = ("spec",)  # what counts as a new generation, e.g. metadata.annotations too
    counts_empty: bool = False  # an empty list or map that is not stored counts as a new generation too
    minds_empty: bool = False  # and validation tells it from none
    unconditional_update: bool = True  # PUT without resourceVersion
    metadata_retold: Retold = "twice"
    status_metadata_retold: Retold = "once"
    bytes_differ: Callable[[Object], bool] | None = None  # of a new object: see server.write.change_detection
    create_on_update: bool = False  # PUT to a missing name creates
    delete_answers_object: bool = False  # DELETE answers the object, not a Status
    deprecation: str = ""  # what every answer warns of
    columns: Any = None  # a custom resource's additionalPrinterColumns
    selectable: tuple[str, ...] = ()  # fields beyond metadata.name and metadata.namespace that can be selected by
    storage: "Resource | None" = field(default=None, repr=False)  # where objects are kept, if not at this version
    convert: Callable[[Object], Object] | None = None  # of a built-in kind: the other version's object at this one
    definition: Any = field(default=None, repr=False)  # the CRD of a custom resource
    default: Callable[[Object], Object] | None = None  # fills in defaults: the object, or a changed copy
    resets: tuple[str, ...] = ()  # what an update never changes beside the status, and so nobody owns
    prepare_for: Callable[[Object, User], None] | None = None  # of a new one: what it says of who asked for it
    prepare_create: Callable[[Object], None] | None = None
    prepare_update: Callable[[Object, Object], None] | None = None
    stamp_update: Callable[[Object, Object, str], None] | None = None  # what it says of when it was changed
    validate: Callable[[Object, Object | None], list[FieldError]] | None = None  # beyond the metadata; old or None
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
        """As error messages name it: configmaps, deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
