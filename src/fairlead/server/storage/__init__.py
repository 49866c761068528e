"""The in-memory store of all objects, conversion between versions, and the optional database on disk."""
