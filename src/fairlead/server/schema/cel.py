"""CEL rules of custom resources (x-kubernetes-validations), evaluated by cel-expr-python: the extra `cel`.

What it does less than a real server: a field's type is not checked where it is used inside an object (a wrong use is an
evaluation error instead), costs are not estimated when rules are defined, and times inside lists and maps of objects
are plain strings.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from fairlead.api import gojson
from fairlead.server import causes
from fairlead.server.causes import Cause
from fairlead.server.schema import cel_work
from fairlead.server.schema.cel_values import TIMES, Misfits, declared, engine_value, escaped, time_at
from fairlead.server.schema.correlation import aligned, correlated, unchanged
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.structural import ANYTHING

MISSING_EXTRA: Final = "validation rules need the extra `cel`: pip install 'fairlead[cel]'"
_NOT_BOOL: Final = "cel expression must evaluate to a bool"
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_PATH: Final = re.compile(r"(?<![\w.])(self|oldSelf)((?:\s*\.\s*\??[A-Za-z_]\w*\b(?!\s*\())+)")
_STEP: Final = re.compile(r"\.\s*\??\s*([A-Za-z_]\w*)")
_LITERAL: Final = re.compile(r"""r?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_FIELD: Final = re.compile(r"\.([A-Za-z_]\w*)|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
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


# Numbers of different types can be compared, which the engine does and does not declare.
_MIXED: Final = re.compile(
    r"<input>:\d+:\d+: found no matching overload for '_[<>]=?_' "
    r"applied to '\((?:int|uint|double), (?:int|uint|double)\)'"
)


_LOOSE: Final = {"list": "list(DYN)", "map": "map(DYN)"}
_SELECTED: Final = re.compile(r"expression of type ('[^']*') cannot be the operand of a select operation")


class Failed(NamedTuple):
    """A rule that did not hold. `same` says that it is forgiven, for its value is the one that stood there before."""

    cause: Cause
    same: bool


class _Rule(NamedTuple):
    text: str
    fact: dict[str, Any]
    program: Any
    message: Any  # the compiled messageExpression, or None
    old: bool  # uses oldSelf
    times: tuple[tuple[str, str, tuple[str, ...]], ...]  # variables for times inside an object
    shape: cel_work.Shape


class _Spent(Exception):
    """No further rule is run on this object. The cause says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.message)
        self.cause = cause


def available() -> bool:
    """Whether the extra is installed."""
    try:
        import cel_expr_python  # noqa: F401
    except ImportError:
        return False
    return True


def has_rules(node: Node) -> bool:
    """Whether a rule stands at or below this node."""
    known = _ruled.get(id(node))
    if known is None:
        rules = node.rules
        below = [*rules.properties.values(), *filter(None, (node.values, node.items))] if rules is not None else []
        held = rules is not None and bool(rules.validations)
        known = _ruled[id(node)] = (node, held or any(has_rules(one) for one in below))
    return known[1]


_ruled: dict[int, tuple[Node, bool]] = {}  # by identity; the node is kept so that its id stays its own
_compiled: "dict[int, tuple[Node, tuple[_Rule | _Refused, ...]]]" = {}


def failures(node: Node, obj: Any, old: Any, under: str = "") -> list[Failed]:
    """The rules that a value fails, given the one that stood there before. `under` is where it stands.

    Bounded: a rule that is too much work is refused in a real server's words, and none is run after it.
    """
    was, found = MISSING if old is None else old, []
    try:
        for failed in _walk(node, obj, was, under, _Place(node, was, obj), _NOWHERE, cel_work.Budget()):
            found.append(failed)  # noqa: PERF402 - what was found before the work became too much is told too
    except _Spent as spent:
        found.append(Failed(spent.cause, False))
    return found


def problems(node: Node, path: str, uncorrelated: str = "", wrong: Sequence[str] = ()) -> Iterator[Cause]:
    """What is wrong with the rules of a schema, for its definition; none is compiled above a field that is `wrong`."""
    rules = node.rules
    sound = not any(field.startswith((f"{path}.", f"{path}[")) for field in wrong)
    for index, fact in enumerate(rules.validations if sound else ()):
        where = f"{path}.x-kubernetes-validations[{index}]"
        if not (fact.get("rule") or "").strip():
            continue  # told with the keywords
        try:
            made = _compile(node, fact)
        except _Refused as error:
            yield Cause("FieldValueInvalid", f"{where}.{error.key}", f"Invalid value: {_shown_rule(fact)}: {error}")
            continue
        if made.old and uncorrelated:
            told = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            yield causes.invalid(f"{where}.rule", fact["rule"], told)
        elif not made.old and fact.get("optionalOldSelf") is not None:
            told = "may not be set if oldSelf is not used in rule"
            yield causes.invalid(f"{where}.optionalOldSelf", fact["optionalOldSelf"], told)
    for key, child in rules.properties.items():
        yield from problems(child, f"{path}.properties[{key}]", uncorrelated, wrong)
    if node.values is not None and node.values is not ANYTHING:
        yield from problems(node.values, f"{path}.additionalProperties", uncorrelated, wrong)
    if node.items is not None:
        below = uncorrelated or ("" if node.list_type == "map" else path)
        yield from problems(node.items, f"{path}.items", below, wrong)


class _Place(NamedTuple):
    """A value beside the one that stood there before (MISSING: none did)."""

    node: Node | None
    old: Any
    new: Any

    @property
    def unchanged(self) -> bool:
        return self.old is not MISSING and unchanged(self.node, self.old, self.new)


_NOWHERE: Final = _Place(None, MISSING, MISSING)


def _walk(
    node: Node | None, value: Any, old: Any, path: str, here: _Place, above: _Place, budget: cel_work.Budget
) -> Iterator[Failed]:
    """`here` and `above` are the value and the nearest one around it of which one knows what stood there before."""
    if node is None or node.rules is None or value is None or not has_rules(node):
        return
    rules = _rules(node)
    size = cel_work.size(value) if rules else cel_work.NOTHING
    for rule in rules:
        if isinstance(rule, _Refused):
            yield Failed(_faulty(node, path, f"rule compile error: {rule}"), False)
            continue
        if rule.old and not rule.fact.get("optionalOldSelf") and (old is MISSING or old is None):
            continue
        work = cel_work.work(rule.shape, size)
        if work > cel_work.LIMIT:
            raise _too_much(node, rule, path)
        if not budget.spend(work):
            raise _Spent(_faulty(node, path, _OUT_OF_BUDGET))
        cause, fault = _evaluate(node, rule, value, old, path)
        if cause is not None:
            held = above if here.old is MISSING else here
            yield Failed(cause, not rule.old and not fault and held.unchanged)
    around = above if here.old is MISSING else here
    if type(value) is dict:
        before = old if type(old) is dict else {}
        properties = node.rules.properties
        for key, inner in value.items():
            child, at = properties.get(key), f"{path}.{key}" if path else key
            if child is None and node.values is not ANYTHING:
                child, at = node.values, f"{path}[{key}]"
            was = before.get(key, MISSING)
            yield from _walk(child, inner, was, at, _Place(child, was, inner), around, budget)
    elif type(value) is list and node.items is not None:
        before_of = correlated(node, old)
        for index, item in enumerate(value):
            was = before_of(item)
            yield from _walk(node.items, item, was, f"{path}[{index}]", _Place(node.items, was, item), around, budget)


def _rules(node: Node) -> "tuple[_Rule | _Refused, ...]":
    known = _compiled.get(id(node))
    if known is None:
        known = _compiled[id(node)] = (node, tuple(_tried(node, fact) for fact in node.rules.validations))
    return known[1]


def _tried(node: Node, fact: dict[str, Any]) -> "_Rule | _Refused":
    """A rule that cannot be compiled stands only in a schema that is being defined, where defaults are held to it."""
    try:
        return _compile(node, fact)
    except _Refused as error:
        return error


def _evaluate(node: Node, rule: _Rule, value: Any, old: Any, path: str) -> tuple[Cause | None, bool]:
    """What is wrong by a rule, and whether it could not even be evaluated."""
    message = (rule.fact.get("message") or "").strip()
    misfits = Misfits()
    data = _data(node, rule, value, old, misfits)
    try:
        result = rule.program.eval(data=data)
        if misfits.told:
            spoiled = rule.program.eval(data=_data(node, rule, value, old, Misfits(spoil=True)))
            if (spoiled.type().name(), spoiled.value()) != (result.type().name(), result.value()):
                told = f"{misfits.told[0]} evaluating rule: {message or rule.text}"
                return _faulty(node, path, told), True
    except RuntimeError as error:
        if "Iteration budget exceeded" not in str(error):
            raise
        raise _too_much(node, rule, path) from None
    if result.type().name() == "BOOL" and result.value() is True:
        return None, False
    if result.type().name() == "ERROR":
        told = _error(str(result.value()))
        for name, _, keys in rule.times:
            if told == f'No value with name "{name}" found in Activation':
                told = f"no such key: {keys[-1]}"
        if told.startswith(cel_work.EXCEEDED):
            raise _too_much(node, rule, path)
        if told.startswith("no such overload"):
            told = f"'{told}': call arguments did not match a supported operator, function or macro signature for"
        else:
            told = f"{told} evaluating"
        return _faulty(node, path, f"{told} rule: {message or rule.text}"), True
    told = _expressed(rule, data) or message or f"failed rule: {rule.text}"
    field = path + _below(node, rule.fact.get("fieldPath") or "")
    reason = rule.fact.get("reason") or "FieldValueInvalid"
    return _cause(reason, field.lstrip(".") or "<nil>", value, told), False


def _data(node: Node, rule: _Rule, value: Any, old: Any, misfits: Misfits) -> dict[str, Any]:
    """The variables of a rule."""
    present = old is not MISSING and old is not None
    data = {"self": engine_value(node, value, misfits)}
    if rule.old:
        data["oldSelf"] = engine_value(node, aligned(node, old, value) if present else value, misfits)
        data["hasOld"] = present
    for name, root, keys in rule.times:
        given = time_at(value if root == "self" else old if present else None, keys)
        if given is not None:
            data[name] = given
    return data


def _below(node: Node | None, path: str) -> str:
    """A rule's fieldPath as a cause shows it: keys of maps stand in brackets, fields never do."""
    shown = ""
    for plain, single, double in _FIELD.findall(path):
        key = plain or single or double
        keyed = node is not None and node.values is not None and key not in node.rules.properties
        shown += f"[{key}]" if keyed else f".{key}"
        node = node.rules.properties.get(key, node.values) if node is not None else None
    return shown


def _faulty(node: Node, path: str, told: str) -> Cause:
    """A rule that could not be evaluated."""
    return Cause("FieldValueInvalid", path or "<nil>", f'Invalid value: "{node.type}": {told}')


def _too_much(node: Node, rule: _Rule, path: str) -> _Spent:
    named = (rule.fact.get("message") or "").strip() or rule.text
    told = f"'{cel_work.EXCEEDED}': no further validation rules will be run due to call cost exceeds limit for rule"
    return _Spent(_faulty(node, path, f"{told}: {named}"))


def _expressed(rule: _Rule, data: dict[str, Any]) -> str:
    """What the messageExpression says, if it is fit to be said."""
    if rule.message is None:
        return ""
    try:
        result = rule.message.eval(data=data)
    except RuntimeError:
        return ""
    if result.type().name() != "STRING":
        return ""
    text = str(result.value()).strip()
    return "" if "\n" in text or len(text) > 5120 else text


def _cause(reason: str, field: str, value: Any, told: str) -> Cause:
    plain = not isinstance(value, dict | list)
    if reason == "FieldValueRequired":
        return causes.required(field, told)
    if reason == "FieldValueForbidden":
        return causes.forbidden(field, told)
    if reason == "FieldValueDuplicate":
        return causes.duplicate(field, value) if plain else Cause(reason, field, "Duplicate value")
    return causes.invalid(field, value, told) if plain else Cause(reason, field, f"Invalid value: {told}")


def _error(text: str) -> str:
    """An evaluation error as the Go engine words it."""
    text = re.sub(r"^[A-Z_]+: ", "", text)
    for pattern, wording in _ERRORS:
        if pattern.search(text):
            return pattern.sub(wording, text)
    return text


class _Refused(Exception):
    def __init__(self, key: str, told: str) -> None:
        super().__init__(told)
        self.key = key


def _compile(node: Node, fact: dict[str, Any]) -> _Rule:
    text = fact["rule"].strip()
    spoken = _spoken(text)
    old = re.search(r"(?<![\w.])oldSelf\b", spoken) is not None
    if problem := _undefined(node, text, spoken):
        raise _Refused("rule", problem)
    if not fact.get("optionalOldSelf"):
        _check(node, text, spoken)
    rewritten, variables = _with_times(node, text, spoken)
    if fact.get("optionalOldSelf"):
        rewritten = _replace(rewritten, r"(?<![\w.])oldSelf\b", "(hasOld ? optional.of(oldSelf) : optional.none())")
    signature, typed = _signature(node), tuple((name, kind) for name, kind, _, _ in variables)
    env = _environment(signature, typed)
    program = _program(env, rewritten, "rule")
    if program.return_type().name() not in (("BOOL",) if _signature(node) == "DYN" else ("BOOL", "DYN")):
        raise _Refused("rule", _NOT_BOOL)
    message = None
    if fact.get("messageExpression"):
        message = _program(env, fact["messageExpression"].strip(), "messageExpression")
        if message.return_type().name() not in ("STRING", "DYN"):
            raise _Refused("messageExpression", "messageExpression must evaluate to a string")
    if (loose := _LOOSE.get(signature.partition("(")[0], signature)) != signature:
        env = _environment(loose, typed)  # values may not fit the types that rules are checked by
        program = env.compile(rewritten)
        message = env.compile(fact["messageExpression"].strip()) if message is not None else None
    kept = tuple((name, root, keys) for name, _, root, keys in variables)
    shape = cel_work.shape(" ".join([spoken, _spoken(fact.get("messageExpression") or "")]))
    return _Rule(text, fact, program, message, old, kept, shape)


def _check(node: Node, text: str, spoken: str) -> None:
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
        if _program(env, "".join(made), "rule", shown=text).return_type().name() not in ("BOOL", "DYN"):
            raise _Refused("rule", _NOT_BOOL)


def _spoken(text: str) -> str:
    """A rule with its string literals blanked out."""
    return _LITERAL.sub(lambda literal: " " * len(literal[0]), text)


def _program(env: Any, text: str, key: str, shown: str = "") -> Any:
    try:
        return env.compile(text)
    except RuntimeError as error:
        told = str(error)
        if "<input>" in told and "<input>" not in _MIXED.sub("", told):
            return env.compile(text, disable_check=True)
        told = told.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        told = told.replace(f" | {text}\n", f" | {shown or text}\n").replace("null_type", "null")
        told = told.replace("google.protobuf.Timestamp", "timestamp").replace("google.protobuf.Duration", "duration")
        told = _SELECTED.sub(r"type \1 does not support field selection", told)
        what = "compilation failed" if key == "rule" else f"{key} compilation failed"
        raise _Refused(key, f"{what}: {_as_member(told, text)}") from None


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


def _replace(text: str, pattern: str, by: str) -> str:
    """Replace outside string literals."""
    pieces, done = [], 0
    for literal in _LITERAL.finditer(text):
        pieces += [re.sub(pattern, by, text[done : literal.start()]), literal[0]]
        done = literal.end()
    return "".join([*pieces, re.sub(pattern, by, text[done:])])


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
    from cel_expr_python.ext import ext_optional, ext_strings

    from fairlead.server.schema.cel_library import functions

    own = _type(signature)
    declared = {"self": own, "oldSelf": own, "hasOld": cel.Type.BOOL} | {name: _type(kind) for name, kind in variables}
    extensions = [
        ext_strings.ExtStrings(),
        ext_optional.ExtOptional(),
        cel.CelExtension("kubernetes", functions()),  # an extension may add overloads to functions that others declare
    ]
    return cel.NewEnv(variables=declared, extensions=extensions)


def _shown_rule(fact: dict[str, Any]) -> str:
    """A rule as the Go type behind it encodes."""
    fields = {
        "Rule": fact.get("rule", ""),
        "Message": fact.get("message", ""),
        "MessageExpression": fact.get("messageExpression", ""),
        "Reason": fact.get("reason"),
        "FieldPath": fact.get("fieldPath", ""),
        "OptionalOldSelf": fact.get("optionalOldSelf"),
    }
    return "{" + ",".join(f'"{key}":{gojson.dumps(value).decode()}' for key, value in fields.items()) + "}"
