"""A server, a cluster, an operator in one test: pytest fixtures, virtual time, faults, no Docker."""
