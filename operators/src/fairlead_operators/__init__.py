"""Reference operators: five real systems and their incidents, the old way beside the safe way."""

DEMOS = {name: f"fairlead_operators.{name}.demo" for name in ("httpproxy", "seinode", "projects", "pulsar", "orphans")}
"""The modules that `fairlead demo` plays, in this order. The entry point `fairlead.demo` names this table."""
