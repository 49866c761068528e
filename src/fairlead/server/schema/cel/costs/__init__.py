"""Costs of CEL rules: the worst-case estimate when a CRD is written, and the limits while a rule runs."""
