"""The kinds that the server serves: a `Resource` for each group, version and plural, and the built-in kinds' rules."""
