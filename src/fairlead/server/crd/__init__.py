"""CustomResourceDefinitions: name conflicts, the kinds they serve, and deletion of their instances."""
