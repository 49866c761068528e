"""Tools for people who run clusters: one module or package per tool. Tools do not import each other."""
