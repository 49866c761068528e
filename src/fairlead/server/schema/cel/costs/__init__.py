"""Costs of CEL rules: the worst-case estimate for a CustomResourceDefinition, and the limits while a rule runs."""
