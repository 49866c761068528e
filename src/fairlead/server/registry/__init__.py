"""The kinds that the server serves: one Resource for each group, version and plural."""
