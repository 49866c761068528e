"""CEL rules of custom resources (x-kubernetes-validations), checked and evaluated by cel-expr-python: the extra `cel`.

`checking` refuses, by the types that a schema gives, what a real server refuses; `compiling` makes programs that run on
plain values; `walking` runs them. What it does less than a real server: times inside lists and maps of objects are
plain strings.
"""

from importlib.util import find_spec
from typing import Final

from fairlead.server.schema.cel.evaluation import Failed, failures, has_rules, problems

__all__ = ["MISSING_EXTRA", "Failed", "available", "failures", "has_rules", "problems"]

MISSING_EXTRA: Final = "validation rules need the extra `cel`: pip install 'fairlead[cel]'"


def available() -> bool:
    """Whether the extra is installed."""
    try:
        return find_spec("cel_expr_python") is not None and find_spec("google.protobuf") is not None
    except ModuleNotFoundError:  # no package google at all
        return False
