"""Admission: built-in plugins (LimitRanges, classes, namespaces and others) and webhooks change or reject a write."""
