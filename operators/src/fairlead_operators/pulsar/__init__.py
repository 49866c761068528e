"""Pulsar's tenants, topics and the like as objects: eleven kinds, one table, and finalizers that let go."""
