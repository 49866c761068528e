"""Pulsar: an operator that manages tenants, topics and eight more resources of Apache Pulsar."""
