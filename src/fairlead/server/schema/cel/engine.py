"""The engine of CEL rules: its environments, a program of a text, and its errors."""

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


def runnable(text: str) -> Any:
    """The program of a text whose types nobody looks at any more.

    The engine knows the loops that make a map, not the function that they call: ours is put there.
    """
    env = untyped()
    program = env.compile(rewriting.rewritten(text), disable_check=True)
    if "transformMap" not in text:
        return program
    made = program.serialize().replace(b"cel.@mapInsert", b"cel.kmapInsert")
    return env.deserialize(made.replace(b"@mapInsert_map", b"kmapInsert_map"))


def typed(variables: Mapping[str, str], pool: Any) -> Any:
    """An environment to check rules in: it knows all types, those of objects from a pool, and runs nothing."""
    from cel_expr_python import cel

    of = tuple(variables.items())
    return cel.NewEnv(descriptor_pool=pool, config=_configuration(of)) if pool is not None else _plain(of)


@lru_cache(maxsize=64)
def _plain(variables: tuple[tuple[str, str], ...]) -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(config=_configuration(variables))


@lru_cache(maxsize=64)  # most objects have variables of the same types, by name; reading takes long
def _configuration(variables: tuple[tuple[str, str], ...]) -> Any:
    from cel_expr_python import cel

    return cel.NewEnvConfigFromYaml(json.dumps(declarations.configuration(variables)))


@cache
def untyped() -> Any:
    """The environment to run rules in: it takes values as they come."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional

    from fairlead.server.schema.cel.functions.library import functions

    variables = {"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, "hasOld": cel.Type.BOOL}
    ours = cel.CelExtension("kubernetes", functions())
    config = cel.NewEnvConfigFromYaml("extensions:\n  - name: two-var-comprehensions\n")
    return cel.NewEnv(config=config, variables=variables, extensions=[ext_optional.ExtOptional(), ours])


def worded(text: str) -> str:
    """An evaluation error as the Go engine words it."""
    text = re.sub(r"^[A-Z_]+: ", "", text)
    for pattern, wording in _ERRORS:
        if pattern.search(text):
            return pattern.sub(wording, text)
    return text
