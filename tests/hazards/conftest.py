"""The `env` fixture: a write environment in its own namespace, on each server."""

from workbench import env

__all__ = ["env"]
