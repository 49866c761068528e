"""Admission: LimitRanges, classes, namespaces and other stored objects change or reject a write."""
