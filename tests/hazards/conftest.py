"""A workbench in a namespace of its own, on each server."""

from workbench import bench

__all__ = ["bench"]
