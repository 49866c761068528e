"""Type checks of a rule against its schema, with cel-go's error messages."""

from functools import lru_cache
from typing import Any, Final

from fairlead.server.schema.cel import engine, rewriting, types
from fairlead.server.schema.cel.checks import error_messages
from fairlead.server.schema.cel.checks.literals import LiteralCheck
from fairlead.server.schema.cel.checks.protobuf_types import ProtobufTypes
from fairlead.server.schema.nodes import Node

UNTYPED_SCHEMA: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert "
    "structural schema to CEL declarations"
)
_RESULT_TYPES: Final = {"rule": "BOOL", "messageExpression": "STRING"}
_WRONG_RESULT: Final = {
    "rule": "cel expression must evaluate to a bool",
    "messageExpression": "messageExpression must evaluate to a string",
}


class InvalidRule(Exception):
    """Raised for a rule that a CustomResourceDefinition may not have. `key` is rule or messageExpression."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def check_rule(node: Node, spec: dict[str, Any]) -> None:
    """Raise InvalidRule if a rule or its messageExpression does not fit the schema of `node`."""
    environment = _build_typed_environment(node, bool(spec.get("optionalOldSelf")))
    if environment is None:
        raise InvalidRule("rule", UNTYPED_SCHEMA)
    for key, result_type in _RESULT_TYPES.items():
        expression = spec.get(key) or ""
        if expression.strip():
            _check_expression(*environment, expression, key, result_type)


def _check_expression(env: Any, object_types: ProtobufTypes, expression: str, key: str, result_type: str) -> None:
    prefix = "compilation failed" if key == "rule" else f"{key} compilation failed"
    source = rewriting.rewrite_for_check(expression)
    try:
        program = env.compile(source)
    except RuntimeError as error:
        message = error_messages.translate_compile_error(env, str(error), source, expression)
        raise InvalidRule(key, f"{prefix}: {object_types.replace_type_names(message)}") from None
    literals = LiteralCheck(program)
    if literals.problems:
        message = error_messages.format_problems(expression, literals.problems)
        raise InvalidRule(key, f"{prefix}: {object_types.replace_type_names(message)}")
    for conversion in literals.conversions:
        result = engine.compile_untyped(conversion).eval(data={})
        if result.type().name() == "ERROR":
            message = engine.translate_error(str(result.value()))
            raise InvalidRule(key, f"{prefix.replace('compilation', 'program instantiation')}: {message}")
    actual_type = program.return_type().name()
    if actual_type != result_type and (actual_type != "DYN" or object_types.is_exact):
        raise InvalidRule(key, _WRONG_RESULT[key])


@lru_cache(maxsize=64)
def _build_typed_environment(node: Node, is_old_optional: bool) -> tuple[Any, ProtobufTypes] | None:
    root = types.cached_type(node)
    if root is None:
        return None
    object_types = ProtobufTypes(root)
    old = f"optional_type({object_types.root})" if is_old_optional else object_types.root
    variables = {"self": object_types.root, "oldSelf": old}
    for variable in ("self",) if is_old_optional else ("self", "oldSelf"):
        variables |= {f"{variable}.{path}": type_name for path, type_name in object_types.variables.items()}
    return engine.typed_environment(variables, object_types.pool), object_types
