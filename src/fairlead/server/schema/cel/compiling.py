"""From a rule to a program: what its schema does not know is refused, what the engine cannot say is rewritten."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import re2

from fairlead.server.schema.cel import costs, guarding, rewriting, types, work
from fairlead.server.schema.cel.budgets import Often
from fairlead.server.schema.cel.expressions import parse
from fairlead.server.schema.cel.rewriting import LITERAL
from fairlead.server.schema.cel.values import TIMES, as_time, declared, escaped
from fairlead.server.schema.nodes import Node
from fairlead.server.schema.patterns import compiled
from fairlead.server.schema.structural import ANYTHING

_WANTED: Final = {"rule": "BOOL", "messageExpression": "STRING"}
_OTHERWISE: Final = {
    "rule": "cel expression must evaluate to a bool",
    "messageExpression": "messageExpression must evaluate to a string",
}
_PATH: Final = re.compile(r"(?<![\w.])(self|oldSelf)((?:\s*\.\s*\??[A-Za-z_]\w*\b(?!\s*\())+)")
_STEP: Final = re.compile(r"\.\s*\??\s*([A-Za-z_]\w*)")
# Numbers of different types can be compared, which the engine does and does not declare.
_MIXED: Final = re.compile(
    r"<input>:\d+:\d+: found no matching overload for '_[<>]=?_' "
    r"applied to '\((?:int|uint|double), (?:int|uint|double)\)'"
)
_LOOSE: Final = {"list": "list(DYN)", "map": "map(DYN)"}
_SELECTED: Final = re.compile(r"expression of type ('[^']*') cannot be the operand of a select operation")


class Rule(NamedTuple):
    text: str
    fact: dict[str, Any]
    program: Any
    guarded: "Callable[[], Guarded]"  # for values that do not fit
    message: Any  # the compiled messageExpression, or None
    old: bool  # uses oldSelf
    times: tuple[tuple[str, str, tuple[str, ...]], ...]  # variables for times inside an object
    shape: work.Shape


class Guarded(NamedTuple):
    """The program for values that do not fit. With optionals it fails nowhere, and may only be believed if it holds."""

    program: Any
    exact: bool


class Refused(Exception):
    def __init__(self, key: str, told: str) -> None:
        super().__init__(told)
        self.key = key


def compile_rule(node: Node, fact: dict[str, Any]) -> Rule:
    text = fact["rule"].strip()
    spoken = rewriting.spoken(text)
    old = re.search(r"(?<![\w.])oldSelf\b", spoken) is not None
    if problem := _undefined(node, text, spoken):
        raise Refused("rule", problem)
    if not fact.get("optionalOldSelf"):
        _check(node, text, spoken, "rule")
    rewritten, variables = _with_times(node, text, spoken)
    if fact.get("optionalOldSelf"):
        optional = "(hasOld ? optional.of(oldSelf) : optional.none())"
        rewritten = rewriting.replaced(rewritten, r"(?<![\w.])oldSelf\b", optional)
    signature, typed = _signature(node), tuple((name, kind) for name, kind, _, _ in variables)
    env = _environment(signature, typed)
    program = _program(env, rewritten, "rule", shown=text if fact.get("optionalOldSelf") else "")
    if program.return_type().name() not in (("BOOL",) if _signature(node) == "DYN" else ("BOOL", "DYN")):
        raise Refused("rule", _OTHERWISE["rule"])
    message = None
    if fact.get("messageExpression"):
        expression = fact["messageExpression"].strip()
        if problem := _undefined(node, expression, rewriting.spoken(expression)):
            raise Refused("messageExpression", f"messageExpression {problem}")
        _check(node, expression, rewriting.spoken(expression), "messageExpression")
        message = _program(env, expression, "messageExpression")
        if message.return_type().name() not in (_WANTED["messageExpression"], "DYN"):
            raise Refused("messageExpression", _OTHERWISE["messageExpression"])
    loose = _LOOSE.get(signature.partition("(")[0], signature)
    if loose != signature and not any(time in signature for time in TIMES.values()):  # which go only where declared
        env = _environment(loose, typed)  # values may not fit the types that rules are checked by
        program = _engine(env, rewritten)
        message = _engine(env, fact["messageExpression"].strip()) if message is not None else None
    kept = tuple((name, root, keys) for name, _, root, keys in variables)
    shape = work.shape(" ".join([spoken, rewriting.spoken(fact.get("messageExpression") or "")]))
    return Rule(text, fact, program, partial(_guarded, rewritten, typed), message, old, kept, shape)


def estimates(node: Node, fact: dict[str, Any], often: Often) -> Iterator[tuple[str, int]]:
    """What a rule that compiles may cost at most, and what its message may."""
    of = types.declared(node)
    if of is None:
        return
    env = _environment("DYN", ())
    optional = bool(fact.get("optionalOldSelf"))
    for key in ("rule", "messageExpression"):
        if text := (fact.get(key) or "").strip():
            once = costs.cost(parse(env, text), of, optional_old=optional)
            yield key, often.cost(once, of) if key == "rule" else once


def _check(node: Node, text: str, spoken: str, key: str) -> None:
    """Refuse wrong uses of fields by their types: the engine knows those of variables only, so each field gets one."""
    if node.type != "object":
        return
    typed: dict[str, str] = {}
    made = list(text)
    for match in _PATH.finditer(spoken):
        if "?" in match[2] or text[: match.start()].endswith("has("):
            continue
        place, end = node, match.end(1)
        for step in re.finditer(r"\.\s*([A-Za-z_]\w*)", match[2]):
            below = {escaped(key): child for key, child in place.rules.properties.items()}
            if step[1] not in below or place.values is not None:
                break
            place, end = below[step[1]], match.start(2) + step.end()
        if end > match.end(1) and place.type not in ("", "object") and text[end : end + 2] != ".?":
            name = re.sub(r"\W", "_", text[match.start() : end])  # as long as the path, so that errors point there
            if typed.setdefault(name, _signature(place)) == _signature(place):
                made[match.start() : end] = name
    if typed:
        env = _environment(_signature(node), tuple(typed.items()))
        if _program(env, "".join(made), key, shown=text).return_type().name() not in (_WANTED[key], "DYN"):
            raise Refused(key, _OTHERWISE[key])


def _engine(env: Any, text: str, *, unchecked: bool = False) -> Any:
    """The engine's program. It knows the loops that make a map, not the function that they call: ours is put there."""
    program = env.compile(rewriting.rewritten(text), disable_check=unchecked)
    if "transformMap" not in text:
        return program
    made = program.serialize().replace(b"cel.@mapInsert", b"cel.kmapInsert")
    return env.deserialize(made.replace(b"@mapInsert_map", b"kmapInsert_map"))


@lru_cache(maxsize=128)
def _guarded(text: str, variables: tuple[tuple[str, str], ...]) -> Guarded:
    env = _environment("DYN", variables)
    program = _engine(env, text, unchecked=True)
    parsed = program.serialize()
    if guarding.has_optionals(parsed):
        return Guarded(program, False)
    return Guarded(env.deserialize(guarding.guarded(parsed)), True)


def _program(env: Any, text: str, key: str, shown: str = "") -> Any:
    what = "compilation failed" if key == "rule" else f"{key} compilation failed"
    try:
        program = _engine(env, text)
        if told := _constants(shown or text):
            raise Refused(key, f"{what}: {told}")
        return program
    except RuntimeError as error:
        told = str(error)
        if "<input>" in told and "<input>" not in _MIXED.sub("", told):
            return _engine(env, text, unchecked=True)
        told = told.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        told = told.replace(f" | {text}\n", f" | {shown or text}\n").replace("null_type", "null")
        told = told.replace("google.protobuf.Timestamp", "timestamp").replace("google.protobuf.Duration", "duration")
        told = _SELECTED.sub(r"type \1 does not support field selection", told)
        raise Refused(key, f"{what}: {_as_member(told, text)}") from None


_CONSTANT: Final = re.compile(rf"(?:(?<![\w.])(timestamp|duration)|\.\s*(matches))\s*\(\s*({LITERAL})\s*\)")


def _constants(text: str) -> str:
    """What is wrong with times and patterns that a rule says outright."""
    told = []
    for found in _CONSTANT.finditer(text):
        name, said, at = found[1] or found[2], found[3], found.start(3)
        raw = said[0] == "r"
        inner = said[raw:][1:-1]
        if ("\\" in inner and not raw) or _fit(name, inner):
            continue
        told.append(f"ERROR: <input>:1:{at + 1}: invalid {name} argument\n | {text}\n | {'.' * at}^")
    return "\n".join(told)


def _fit(name: str, text: str) -> bool:
    try:
        if name == "matches":
            compiled(text)
        else:
            as_time(text, name.upper())
    except (ValueError, re2.error):
        return False
    return True


def _as_member(told: str, text: str) -> str:
    """A call on a receiver is told with the receiver in front."""
    match = re.search(
        r"<input>:1:(\d+): found no matching overload for '(\w+)' applied to '\((\S+?)(?:, (.*))?\)'", told
    )
    if match is None or not text[: int(match[1]) - 1].endswith(f".{match[2]}"):
        return told
    return told.replace(f"'({match[3]}{', ' + match[4] if match[4] else ''})'", f"'{match[3]}.({match[4] or ''})'")


def _undefined(node: Node, text: str, spoken: str) -> str:
    """The first field that a rule names and its schema does not declare."""
    for match in _PATH.finditer(spoken):
        place: Node | None = node
        for step in _STEP.finditer(match[2]):
            if place is None or place.type != "object" or place.values is not None:
                break
            below = {escaped(key): child for key, child in declared(place).items()}
            if step[1] not in below:
                has = text[: match.start()].endswith("has(") and match.end() == match.start(2) + step.end()
                at = match.start() - 1 if has else match.start(2) + step.start()
                mark = f" | {text}\n | {'.' * at}^"
                return f"compilation failed: ERROR: <input>:1:{at + 1}: undefined field '{step[1]}'\n{mark}"
            place = below[step[1]]
    return ""


def _with_times(node: Node, text: str, spoken: str) -> tuple[str, list[tuple[str, str, str, tuple[str, ...]]]]:
    """The rule with the times inside an object under names of their own: the engine takes times only as variables."""
    variables: dict[str, tuple[str, str, str, tuple[str, ...]]] = {}
    made, done = "", 0
    for match in _PATH.finditer(spoken):
        if "?" in match[2] or text[: match.start()].endswith("has("):
            continue
        place, keys, end = node, [], 0
        for step in re.finditer(r"\.\s*([A-Za-z_]\w*)", match[2]):
            below = {escaped(key): (key, child) for key, child in place.rules.properties.items()}
            if step[1] not in below:
                break
            key, place = below[step[1]]
            keys.append(key)
            end = step.end()
        kind = TIMES.get(place.rules.format) if keys and place.type == "string" else None
        if kind is not None:
            name = f"{match[1]}__{'_'.join(escaped(key) for key in keys)}"
            variables[name] = (name, kind, match[1], tuple(keys))
            made += text[done : match.start()] + name
            done = match.start(2) + end
    return made + text[done:], list(variables.values())


def _signature(node: Node) -> str:
    """The type of a value here, as text, so that environments can be shared."""
    if node.type == "string":
        return "BYTES" if node.rules.format == "byte" else TIMES.get(node.rules.format, "STRING")
    if node.type == "array":
        return f"list({_signature(node.items)})" if node.items is not None else "list(DYN)"
    if node.type == "object":
        known = node.values is not None and node.values is not ANYTHING
        return f"map({_signature(node.values)})" if known and node.values is not None else "map(DYN)"
    return {"integer": "INT", "number": "DOUBLE", "boolean": "BOOL"}.get(node.type, "DYN")


def _type(signature: str) -> Any:
    from cel_expr_python import cel

    if signature.startswith("list("):
        return cel.Type.List(_type(signature[5:-1]))
    if signature.startswith("map("):
        return cel.Type.Map(cel.Type.STRING, _type(signature[4:-1]))
    return getattr(cel.Type, signature)


@lru_cache(maxsize=512)
def _environment(signature: str, variables: tuple[tuple[str, str], ...]) -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional

    from fairlead.server.schema.cel.library import functions

    own = _type(signature)
    declared = {"self": own, "oldSelf": own, "hasOld": cel.Type.BOOL} | {name: _type(kind) for name, kind in variables}
    ours = cel.CelExtension("kubernetes", functions())
    config = cel.NewEnvConfigFromYaml("extensions:\n  - name: two-var-comprehensions\n")
    return cel.NewEnv(config=config, variables=declared, extensions=[ext_optional.ExtOptional(), ours])
