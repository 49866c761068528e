"""Validation of the built-in kinds: tables of rules, applied to decoded and defaulted objects.

The rules cover the fields that controllers and their tests use: required fields, names, selectors, ranges, enumerations
and immutable fields. A real server validates more. `rules` is the language in which the tables are written.
"""
