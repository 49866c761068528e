"""Reference operators: five real systems with their incidents, each as the original wrote and as fairlead writes."""

DEMOS = {name: f"fairlead_operators.{name}.demo" for name in ("httpproxy", "seinode", "projects", "pulsar", "orphans")}
"""The demo modules by system, in the order in which `fairlead demo` plays them. The entry point refers to this."""
