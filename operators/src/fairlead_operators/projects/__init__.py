"""Project: one object that becomes a namespace with its service accounts, roles and bindings."""
