"""Requests and responses: the in-process transport, the HTTP listener, routing, bodies and representations."""
