"""Commands for people who run clusters: one module or package per tool. They do not import each other."""
