"""Rules on a value and on everything in it: which fail, and what a definition's are wrong about."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from fairlead.api import gojson
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.cel import engine, types
from fairlead.server.schema.cel.checks.type_check import UNTYPED, Refused
from fairlead.server.schema.cel.costs import runtime
from fairlead.server.schema.cel.costs.limits import Budget, Often
from fairlead.server.schema.cel.rules import Rule, compile_rule, estimates
from fairlead.server.schema.cel.values import Misfits, engine_value
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.ratcheting import is_unchanged, match_old_items, reorder_old_value
from fairlead.server.schema.structural import ANYTHING

_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_FIELD: Final = re.compile(r"\.([A-Za-z_]\w*)|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


class Failed(NamedTuple):
    """A rule that did not hold. `same` says that it is forgiven, for its value is the one that stood there before."""

    cause: FieldError
    same: bool


class _Spent(Exception):
    """No further rule is run on this object. The cause says why."""

    def __init__(self, cause: FieldError) -> None:
        super().__init__(cause.message)
        self.cause = cause


def has_rules(node: Node) -> bool:
    """Whether a rule stands at or below this node."""
    known = _ruled.get(id(node))
    if known is None:
        rules = node.constraints
        below = [*rules.properties.values(), *filter(None, (node.values, node.items))] if rules is not None else []
        held = rules is not None and bool(rules.validations)
        known = _ruled[id(node)] = (node, held or any(has_rules(one) for one in below))
    return known[1]


_ruled: dict[int, tuple[Node, bool]] = {}  # by identity; the node is kept so that its id stays its own
_compiled: "dict[int, tuple[Node, tuple[Rule | Refused, ...]]]" = {}


def failures(node: Node, obj: Any, old: Any, under: str = "") -> list[Failed]:
    """The rules that a value fails, given the one that stood there before. `under` is where it stands.

    Bounded: a rule that is too much work is refused in a real server's words, and none is run after it.
    """
    was, found = MISSING if old is None else old, []
    try:
        for failed in _walk(node, obj, was, under, _Place(node, was, obj), _NOWHERE, runtime.Budget()):
            found.append(failed)  # noqa: PERF402 - what was found before the work became too much is told too
    except _Spent as spent:
        found.append(Failed(spent.cause, False))
    return found


def problems(node: Node, path: str, wrong: Sequence[str] = (), *, costs: bool = True) -> Iterator[FieldError]:
    """What is wrong with the rules of a schema, for its definition; none is compiled above a field that is `wrong`.

    Without `costs`, a rule may be as expensive as it is; all of them together never may.
    """
    budget = Budget(strict=costs)
    yield from _wrong(node, path, "", wrong, Often(), budget)
    yield from budget.overspent(path)


def _wrong(
    node: Node, path: str, uncorrelated: str, wrong: Sequence[str], often: Often, budget: Budget
) -> Iterator[FieldError]:
    rules, inside = node.constraints, often.inside(node)
    for key, child in rules.properties.items():
        yield from _wrong(child, f"{path}.properties[{key}]", uncorrelated, wrong, inside, budget)
    if node.values is not None and node.values is not ANYTHING:
        yield from _wrong(node.values, f"{path}.additionalProperties", uncorrelated, wrong, inside, budget)
    if node.items is not None:
        below = uncorrelated or ("" if node.list_type == "map" else path)
        yield from _wrong(node.items, f"{path}.items", below, wrong, inside, budget)
    if not rules.validations or any(field.startswith((f"{path}.", f"{path}[")) for field in wrong):
        return
    if types.ruled(node) is None:
        yield FieldError("InternalError", f"{path}.x-kubernetes-validations", f"Internal error: {UNTYPED}")
        return
    for index, fact in enumerate(rules.validations):
        if (fact.get("rule") or "").strip():  # the others are told with the keywords
            where = f"{path}.x-kubernetes-validations[{index}]"
            yield from _wrong_rule(node, fact, where, uncorrelated, often, budget)


def _wrong_rule(
    node: Node, fact: dict[str, Any], where: str, uncorrelated: str, often: Often, budget: Budget
) -> Iterator[FieldError]:
    try:
        made: Rule | None = compile_rule(node, fact)
    except Refused as error:
        yield FieldError("FieldValueInvalid", f"{where}.{error.key}", f"Invalid value: {_shown_rule(fact)}: {error}")
        made = None
    if made is not None:
        for key, cost in estimates(node, fact, often):
            yield from budget.spend(f"{where}.{key}", key, cost)
    if made is not None and made.old and uncorrelated:
        told = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
        yield field_errors.invalid(f"{where}.rule", fact["rule"], told)
    elif (made is None or not made.old) and fact.get("optionalOldSelf") is not None:
        told = "may not be set if oldSelf is not used in rule"
        yield field_errors.invalid(f"{where}.optionalOldSelf", fact["optionalOldSelf"], told)


class _Place(NamedTuple):
    """A value beside the one that stood there before (MISSING: none did)."""

    node: Node | None
    old: Any
    new: Any

    @property
    def unchanged(self) -> bool:
        return self.old is not MISSING and is_unchanged(self.node, self.old, self.new)


_NOWHERE: Final = _Place(None, MISSING, MISSING)


def _walk(
    node: Node | None, value: Any, old: Any, path: str, here: _Place, above: _Place, budget: runtime.Budget
) -> Iterator[Failed]:
    """`here` and `above` are the value and the nearest one around it of which one knows what stood there before."""
    if node is None or node.constraints is None or value is None or not has_rules(node):
        return
    rules = _rules(node)
    size = runtime.size(value) if rules else runtime.NOTHING
    for rule in rules:
        if isinstance(rule, Refused):
            yield Failed(_faulty(node, path, f"rule compile error: {rule}"), False)
            continue
        if rule.old and not rule.fact.get("optionalOldSelf") and (old is MISSING or old is None):
            continue
        effort = runtime.work(rule.shape, size)
        if effort > runtime.LIMIT:
            raise _too_much(node, rule, path)
        if not budget.spend(effort):
            raise _Spent(_faulty(node, path, _OUT_OF_BUDGET))
        cause, fault = _evaluate(node, rule, value, old, path)
        if cause is not None:
            held = above if here.old is MISSING else here
            yield Failed(cause, not rule.old and not fault and held.unchanged)
    around = above if here.old is MISSING else here
    if type(value) is dict:
        before = old if type(old) is dict else {}
        properties = node.constraints.properties
        for key, inner in value.items():
            child, at = properties.get(key), f"{path}.{key}" if path else key
            if child is None and node.values is not ANYTHING:
                child, at = node.values, f"{path}[{key}]"
            was = before.get(key, MISSING)
            yield from _walk(child, inner, was, at, _Place(child, was, inner), around, budget)
    elif type(value) is list and node.items is not None:
        before_of = match_old_items(node, old)
        for index, item in enumerate(value):
            was = before_of(item)
            yield from _walk(node.items, item, was, f"{path}[{index}]", _Place(node.items, was, item), around, budget)


def _rules(node: Node) -> "tuple[Rule | Refused, ...]":
    known = _compiled.get(id(node))
    if known is None:
        known = _compiled[id(node)] = (node, tuple(_tried(node, fact) for fact in node.constraints.validations))
    return known[1]


def _tried(node: Node, fact: dict[str, Any]) -> "Rule | Refused":
    """A rule that cannot be compiled stands only in a schema that is being defined, where defaults are held to it."""
    try:
        return compile_rule(node, fact)
    except Refused as error:
        return error if error.key == "rule" else _tried(node, {**fact, "messageExpression": ""})


def _evaluate(node: Node, rule: Rule, value: Any, old: Any, path: str) -> tuple[FieldError | None, bool]:
    """What is wrong by a rule, and whether it could not even be evaluated."""
    message = (rule.fact.get("message") or "").strip()
    misfits = Misfits()
    data = _data(node, rule, value, old, misfits)
    runtime.METER.start()
    try:
        program, exact = rule.guarded() if misfits.told else (rule.program, True)
        if not exact:
            data = _data(node, rule, value, old, Misfits(spoil=True))
        result = program.eval(data=data)
    except RuntimeError as error:
        if "Iteration budget exceeded" in str(error):
            raise _too_much(node, rule, path) from None
        told = misfits.told[0] if misfits.told else engine.worded(str(error))
        return _faulty(node, path, f"{told} evaluating rule: {message or rule.text}"), True
    if result.type().name() == "BOOL" and result.value() is True:
        return None, False
    if not exact:
        return _faulty(node, path, f"{misfits.told[0]} evaluating rule: {message or rule.text}"), True
    if result.type().name() == "ERROR":
        told = engine.worded(str(result.value()))
        if told.startswith(runtime.EXCEEDED):
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


def _data(node: Node, rule: Rule, value: Any, old: Any, misfits: Misfits) -> dict[str, Any]:
    """The variables of a rule."""
    present = old is not MISSING and old is not None
    data = {"self": engine_value(node, value, misfits)}
    if rule.old:
        data["oldSelf"] = engine_value(node, reorder_old_value(node, old, value) if present else value, misfits)
        data["hasOld"] = present
    return data


def _below(node: Node | None, path: str) -> str:
    """A rule's fieldPath as a cause shows it: keys of maps stand in brackets, fields never do."""
    shown = ""
    for plain, single, double in _FIELD.findall(path):
        key = plain or single or double
        keyed = node is not None and node.values is not None and key not in node.constraints.properties
        shown += f"[{key}]" if keyed else f".{key}"
        node = node.constraints.properties.get(key, node.values) if node is not None else None
    return shown


def _faulty(node: Node, path: str, told: str) -> FieldError:
    """A rule that could not be evaluated."""
    return FieldError("FieldValueInvalid", path or "<nil>", f'Invalid value: "{node.type}": {told}')


def _too_much(node: Node, rule: Rule, path: str) -> _Spent:
    named = (rule.fact.get("message") or "").strip() or rule.text
    told = f"'{runtime.EXCEEDED}': no further validation rules will be run due to call cost exceeds limit for rule"
    return _Spent(_faulty(node, path, f"{told}: {named}"))


def _expressed(rule: Rule, data: dict[str, Any]) -> str:
    """What the messageExpression says, if it is fit to be said."""
    if rule.message is None:
        return ""
    runtime.METER.start()
    try:
        result = rule.message.eval(data=data)
    except RuntimeError:
        return ""
    if result.type().name() != "STRING":
        return ""
    text = str(result.value()).strip()
    return "" if "\n" in text or len(text) > 5120 else text


def _cause(reason: str, field: str, value: Any, told: str) -> FieldError:
    plain = not isinstance(value, dict | list)
    if reason == "FieldValueRequired":
        return field_errors.required(field, told)
    if reason == "FieldValueForbidden":
        return field_errors.forbidden(field, told)
    if reason == "FieldValueDuplicate":
        return field_errors.duplicate(field, value) if plain else FieldError(reason, field, "Duplicate value")
    return field_errors.invalid(field, value, told) if plain else FieldError(reason, field, f"Invalid value: {told}")


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
