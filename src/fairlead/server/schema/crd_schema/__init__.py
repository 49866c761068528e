"""Validation of the openAPIV3Schema of a CustomResourceDefinition."""
