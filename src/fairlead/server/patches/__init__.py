"""Patches: pure functions from a live object and a patch to the object wanted."""
