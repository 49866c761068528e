"""Admission: what other objects in the store add to a write or reject it for."""
