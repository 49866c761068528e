"""A workbench in a namespace of its own, on each server."""

from workbench import env

__all__ = ["env"]
