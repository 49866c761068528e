"""The data model that all parts share: kinds, objects, errors, selectors, field sets, times.

Pure functions on plain data. They do no I/O, and read time and randomness only from the `World` they are given.
"""
