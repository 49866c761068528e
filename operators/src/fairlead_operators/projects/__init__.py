"""Project: an operator that creates a namespace with service accounts, roles and bindings for each Project."""
