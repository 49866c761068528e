"""Admission: other objects in the store complete or reject a write."""
