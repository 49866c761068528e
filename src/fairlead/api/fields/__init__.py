"""Field sets: FieldsV1 paths, set algebra, who owns what. Pure functions on plain data."""
