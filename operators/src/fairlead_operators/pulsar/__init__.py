"""Pulsar: manages tenants, topics and eight more resources of Apache Pulsar as Kubernetes objects."""
