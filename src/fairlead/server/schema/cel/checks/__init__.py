"""Checks of the CEL rules in a CustomResourceDefinition: their types, literals and error messages."""
