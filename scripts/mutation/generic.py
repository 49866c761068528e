"""Generic mutants: each inverts one condition or omits one statement."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

_INVERSE = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


class Change(NamedTuple):
    line: int
    old: str
    new: str
    text: str  # The whole file with the change.


def changes(source: str) -> Iterator[Change]:
    """Yield every change of a module's text, one at a time."""
    for node in ast.walk(ast.parse(source)):
        for replaced_node, new in _replacements(node):
            start, end = (_offset(source, replaced_node, prefix) for prefix in ("", "end_"))
            old = " ".join(source[start:end].split())
            yield Change(replaced_node.lineno, old, new, source[:start] + new + source[end:])


def _replacements(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield node, f"({ast.unparse(left)} {_INVERSE[type(op)]} {ast.unparse(right)})"
        case ast.BoolOp(op=op, values=values):
            operator_text = " or " if isinstance(op, ast.And) else " and "
            yield node, "(" + operator_text.join(f"({ast.unparse(value)})" for value in values) + ")"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"bool({ast.unparse(operand)})"
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.AugAssign():
            yield node, "pass"
        case ast.Continue():
            yield node, "break"


def _offset(source: str, node: ast.expr | ast.stmt, prefix: str) -> int:
    line, column = getattr(node, f"{prefix}lineno"), getattr(node, f"{prefix}col_offset")
    before = source.splitlines(keepends=True)[:line]
    return sum(map(len, before[:-1])) + len(before[-1].encode()[:column].decode())
