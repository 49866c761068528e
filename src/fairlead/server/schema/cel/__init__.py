"""CEL rules of custom resources (x-kubernetes-validations), evaluated by cel-expr-python: the extra `cel`.

What it does less than a real server: a field's type is not checked where it is used inside an object (a wrong use is an
evaluation error instead), and times inside lists and maps of objects are plain strings.
"""

from typing import Final

from fairlead.server.schema.cel.walking import Failed, failures, has_rules, problems

__all__ = ["MISSING_EXTRA", "Failed", "available", "failures", "has_rules", "problems"]

MISSING_EXTRA: Final = "validation rules need the extra `cel`: pip install 'fairlead[cel]'"


def available() -> bool:
    """Whether the extra is installed."""
    try:
        import cel_expr_python  # noqa: F401
    except ImportError:
        return False
    return True
