"""Schemas compiled once into node trees; merge, ownership, pruning, defaulting and validation walk the same tree."""
