"""Validation of the built-in kinds: tables of rules, applied to decoded and defaulted objects.

The rules cover what controllers and their tests meet: required fields, names, selectors, ranges, enumerations and
immutable fields. They do not cover all that a real server validates. `rules` is the language that the tables use.
"""
