"""The CEL engine (cel-expr-python): its environments, compilation, and translation of its errors to those of cel-go."""

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from fairlead.server.schema.cel import rewriting
from fairlead.server.schema.cel.functions import declarations

_ERRORS: Final = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"Index error: index=(-?\d+) size=\d+"), r"index out of bounds: \1"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"^Type conversion"), "type conversion"),
    (re.compile(r"cannot convert string to (\w+)"), r"type conversion error from 'string' to '\1'"),
    (
        re.compile(r"String to (Duration|Timestamp) conversion failed"),
        r"type conversion error from 'string' to 'google.protobuf.\1'",
    ),
    (re.compile(r"No matching overloads found : .*"), "no such overload"),
)


def compile_untyped(rule: str) -> Any:
    """Compile a rule without type checks, for evaluation.

    The engine has the macro transformMap but not the function to which it expands. Ours replaces it.
    """
    env = untyped_environment()
    program = env.compile(rewriting.rewrite_for_evaluation(rule), disable_check=True)
    if "transformMap" not in rule:
        return program
    serialized = program.serialize().replace(b"cel.@mapInsert", b"cel.kmapInsert")
    return env.deserialize(serialized.replace(b"@mapInsert_map", b"kmapInsert_map"))


def typed_environment(variables: Mapping[str, str], pool: Any) -> Any:
    """Return an environment for type checks, which cannot evaluate. `pool` has the types of objects."""
    from cel_expr_python import cel

    items = tuple(variables.items())
    if pool is None:
        return _environment_without_objects(items)
    return cel.NewEnv(descriptor_pool=pool, config=_configuration(items))


@lru_cache(maxsize=64)
def _environment_without_objects(variables: tuple[tuple[str, str], ...]) -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(config=_configuration(variables))


@lru_cache(maxsize=64)  # Most schemas have variables with the same type names, and parsing the YAML is slow.
def _configuration(variables: tuple[tuple[str, str], ...]) -> Any:
    from cel_expr_python import cel

    return cel.NewEnvConfigFromYaml(json.dumps(declarations.configuration(variables)))


@cache
def untyped_environment() -> Any:
    """Return the environment for evaluation, in which variables have any type."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional

    from fairlead.server.schema.cel.functions.library import functions

    variables = {"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, "hasOld": cel.Type.BOOL}
    kubernetes = cel.CelExtension("kubernetes", functions())
    config = cel.NewEnvConfigFromYaml("extensions:\n  - name: two-var-comprehensions\n")
    return cel.NewEnv(config=config, variables=variables, extensions=[ext_optional.ExtOptional(), kubernetes])


def translate_error(error: str) -> str:
    """Return cel-go's message for an evaluation error of the engine."""
    error = re.sub(r"^[A-Z_]+: ", "", error)
    for pattern, replacement in _ERRORS:
        if pattern.search(error):
            return pattern.sub(replacement, error)
    return error
