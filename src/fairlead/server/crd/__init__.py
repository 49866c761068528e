"""CustomResourceDefinitions: accepted names, served kinds, and deletion of their instances."""
