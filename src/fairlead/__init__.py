"""Kubernetes controllers that never fight over what they write.

Importing this package is cheap: names load the module behind them on first use.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

# public name -> module that defines it
_PUBLIC = {
    "Kind": "fairlead.api.kinds",
    "kind": "fairlead.api.kinds",
    "Object": "fairlead.api.objects",
    "ApiError": "fairlead.api.errors",
    "UnknownOutcome": "fairlead.api.errors",
    "World": "fairlead.api.world",
    "Operator": "fairlead.runtime.operator",
    "Context": "fairlead.runtime.context",
    "ReadContext": "fairlead.runtime.context",
    "select": "fairlead.runtime.sources",
    "RequeueAfter": "fairlead.runtime.outcomes",
    "Wait": "fairlead.runtime.outcomes",
    "Terminal": "fairlead.runtime.outcomes",
    "LeaseLost": "fairlead.runtime.leases",
    "ForeignObject": "fairlead.writes.errors",
    "ImmutableField": "fairlead.writes.errors",
    "ObjectDeleted": "fairlead.writes.errors",
    "WriteError": "fairlead.writes.errors",
    "Draft": "fairlead.writes.draft",
}

if TYPE_CHECKING:
    from fairlead.api.errors import ApiError as ApiError
    from fairlead.api.errors import UnknownOutcome as UnknownOutcome
    from fairlead.api.kinds import Kind as Kind
    from fairlead.api.kinds import kind as kind
    from fairlead.api.objects import Object as Object
    from fairlead.api.world import World as World
    from fairlead.runtime.context import Context as Context
    from fairlead.runtime.context import ReadContext as ReadContext
    from fairlead.runtime.leases import LeaseLost as LeaseLost
    from fairlead.runtime.operator import Operator as Operator
    from fairlead.runtime.outcomes import RequeueAfter as RequeueAfter
    from fairlead.runtime.outcomes import Terminal as Terminal
    from fairlead.runtime.outcomes import Wait as Wait
    from fairlead.runtime.sources import select as select
    from fairlead.writes.draft import Draft as Draft
    from fairlead.writes.errors import ForeignObject as ForeignObject
    from fairlead.writes.errors import ImmutableField as ImmutableField
    from fairlead.writes.errors import ObjectDeleted as ObjectDeleted
    from fairlead.writes.errors import WriteError as WriteError

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
    else:
        builtin = import_module("fairlead.api.builtin")  # fl.ConfigMap, fl.Deployment, ...
        value = getattr(builtin, name, None)
        if value is None or name.startswith("_"):
            raise AttributeError(f"module 'fairlead' has no attribute {name!r}")
    globals()[name] = value
    return value
