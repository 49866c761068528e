"""Rules for controllers in Python: kopf, kubernetes, kubernetes_asyncio, lightkube, kr8s, and fairlead's raw client."""

from fairlead.tools.lint.python_rules.check import lint_python

__all__ = ["lint_python"]
