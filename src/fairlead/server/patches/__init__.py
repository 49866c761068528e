"""Patch formats: pure functions that apply a JSON patch, merge patch or strategic merge patch to an object."""
