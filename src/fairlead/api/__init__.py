"""What an object is: kinds, names, conditions, owner references, errors, selectors, field sets.

Pure functions on plain data. No I/O, and nothing here reads a clock or a random source by itself (see `world`).
"""
