"""Validation of the built-in kinds: functions (new, old or None) -> causes, on decoded and defaulted objects.

They hold what controllers and their tests meet: required fields, names, selectors, ranges, enumerations, and what may
not change. They do not hold everything that a real server does.
"""
