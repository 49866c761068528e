"""Schemas, compiled once into trees of nodes. Merge, ownership, pruning, defaulting and validation walk these trees."""
