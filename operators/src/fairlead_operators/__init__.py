"""Reference operators: five real systems with an incident, each with the original's writes and with fairlead's."""

DEMOS = {name: f"fairlead_operators.{name}.demo" for name in ("httpproxy", "seinode", "projects", "pulsar", "orphans")}
"""The demo modules by system, in the order in which `fairlead demo` plays them. The entry point refers to this."""
