"""CEL rules of custom resources (x-kubernetes-validations).

They need the extra `cel`, which installs cel-expr-python.

- `checks` validates the rules when a CustomResourceDefinition is written, and rejects the rules that a real server
  rejects.
- `rules` compiles a rule into a program that runs on plain values.
- `evaluation` runs the rules on an object.
- `costs` limits the cost of rules.
- `functions` has the functions that Kubernetes adds to CEL.

Limitation: times inside lists and maps of objects are plain strings.
"""

from importlib.util import find_spec
from typing import Final

from fairlead.server.schema.cel.checks.rule_validation import validate_rules
from fairlead.server.schema.cel.evaluation import RuleFailure, evaluate_rules
from fairlead.server.schema.cel.rules import has_rules

__all__ = ["MISSING_EXTRA", "RuleFailure", "evaluate_rules", "has_rules", "is_available", "validate_rules"]

MISSING_EXTRA: Final = "validation rules need the extra `cel`: pip install 'fairlead[cel]'"


def is_available() -> bool:
    """Return whether the extra `cel` is installed."""
    try:
        return find_spec("cel_expr_python") is not None and find_spec("google.protobuf") is not None
    except ModuleNotFoundError:  # There is no package `google` at all.
        return False
