"""Patch formats: pure functions that apply a patch to a live object."""
