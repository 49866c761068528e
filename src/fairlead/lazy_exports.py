"""Public names that load the module behind them on first use, so that importing a package stays cheap."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package that exports the names listed for each module.

    Define them under `if not TYPE_CHECKING`: a `__getattr__` that a type checker sees makes every name valid.
    """
    sources = {name: module for module, names in modules.items() for name in names}

    def get_attribute(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        module = import_module(sources[name])
        # A name that is a module itself, such as `fairlead.errors`, stands for the whole module.
        value = module if sources[name] == f"{package}.{name}" else getattr(module, name)
        vars(sys.modules[package])[name] = value
        return value

    def list_attributes() -> list[str]:
        return sorted(vars(sys.modules[package])["__all__"])

    return get_attribute, list_attributes
