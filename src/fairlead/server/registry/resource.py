"""A Resource: everything the verbs need to know of one served kind, built-in or custom."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlead.server.schema.nodes import Node

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """One served kind at one version.

    The flags are what a real server's strategies decide; the hooks are optional and pure.
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
    custom: bool = False  # a CRD's: prune, default and validate by schema; no strategic merge
    status: bool = False  # has /status, so the main path ignores status and the other way round
    scale: Any = None  # the paths behind /scale, or None
    has_generation: bool = False
    unconditional_update: bool = True  # PUT without resourceVersion
    create_on_update: bool = False  # PUT to a missing name creates
    delete_answers_object: bool = False  # DELETE answers the object, not a Status
    prepare_create: Callable[[Object], None] | None = None
    prepare_update: Callable[[Object, Object], None] | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """As error messages name it: configmaps, deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
