"""The data model that all parts share: kinds, objects, errors, selectors, field sets, times.

The functions work on plain data and do no I/O. They read time and randomness only from the `World` argument.
"""
