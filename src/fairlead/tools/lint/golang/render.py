"""Go expressions as text, for messages and comparisons."""

from __future__ import annotations

from fairlead.tools.lint.golang import syntax as go


def render(expression: go.Expr) -> str:
    """Return an expression as text, for messages and comparisons."""
    match expression:
        case go.Name(name, _):
            return name
        case go.Select(base, name, _):
            return f"{render(base)}.{name}"
        case go.Call(func, args):
            return f"{render(func)}({', '.join(render(a) for a in args)})"
        case go.Unary(op, operand, _):
            return op + render(operand)
        case go.Literal(text, is_string, _):
            return f'"{text}"' if is_string else text
        case go.Index(base, index):
            return f"{render(base)}[{render(index) if index is not None else ':'}]"
        case go.Composite(kind):
            return f"{kind}{{…}}"
        case go.Closure():
            return "func(…)"
        case go.Binary(op, left, right, _):
            return f"{render(left)} {op} {render(right)}"
        case go.Assertion(base, kind, _):
            return f"{render(base)}.({kind})"
        case go.Conversion(kind, operand, _):
            return f"{kind}({render(operand)})"
    return "…"


def call_name(call: go.Call) -> str:
    match call.func:
        case go.Name(name, _):
            return name
        case go.Select(go.Name(base, _), name, _):
            return f"{base}.{name}"
    return ""


def is_append_of(value: go.Expr, target: go.Expr) -> bool:
    """Return whether `value` is `append(target, …)`."""
    return (
        isinstance(value, go.Call)
        and isinstance(value.func, go.Name)
        and value.func.name == "append"
        and bool(value.args)
        and render(value.args[0]) == render(target)
    )
