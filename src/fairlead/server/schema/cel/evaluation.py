"""Evaluate the CEL rules of a schema on an object and on every value inside it."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.schema.cel import engine
from fairlead.server.schema.cel.checks.type_check import InvalidRule
from fairlead.server.schema.cel.costs import runtime
from fairlead.server.schema.cel.rules import Rule, compile_rule, has_rules
from fairlead.server.schema.cel.values import InvalidValues, to_cel
from fairlead.server.schema.nodes import MISSING, Node
from fairlead.server.schema.ratcheting import is_unchanged, match_old_items, reorder_old_value
from fairlead.server.schema.structural import ANYTHING

_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_FIELD: Final = re.compile(r"\.([A-Za-z_]\w*)|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


class RuleFailure(NamedTuple):
    """The error of a rule. `is_ratcheted`: the value did not change, so the error becomes a warning."""

    error: FieldError
    is_ratcheted: bool


class _BudgetExceeded(Exception):
    """Raised if the rules of one object cost too much. No further rule runs."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(error.message)
        self.error = error


_compiled: "dict[int, tuple[Node, tuple[Rule | InvalidRule, ...]]]" = {}  # By id. The cache keeps the node alive.


def evaluate_rules(node: Node, obj: Any, old: Any, path: str = "") -> list[RuleFailure]:
    """Return the failures of all rules on a value at `path` with this old value.

    A rule that is too expensive fails with the real server's message, and no further rule runs.
    """
    old_value, failures = MISSING if old is None else old, []
    try:
        for failure in _evaluate_node(
            node, obj, old_value, path, _Change(node, old_value, obj), _NO_CHANGE, runtime.WorkBudget()
        ):
            failures.append(failure)  # noqa: PERF402 - keep the failures that precede an exceeded budget
    except _BudgetExceeded as exceeded:
        failures.append(RuleFailure(exceeded.error, False))
    return failures


class _Change(NamedTuple):
    """A new value and its old value, which is MISSING if there was none."""

    node: Node | None
    old: Any
    new: Any

    @property
    def is_unchanged(self) -> bool:
        return self.old is not MISSING and is_unchanged(self.node, self.old, self.new)


_NO_CHANGE: Final = _Change(None, MISSING, MISSING)


def _evaluate_node(
    node: Node | None,
    value: Any,
    old: Any,
    path: str,
    change: _Change,
    outer_change: _Change,
    budget: runtime.WorkBudget,
) -> Iterator[RuleFailure]:
    """Yield the failures of the rules on a value and on the values inside it.

    `outer_change` is the change of the nearest value around this one with a known old value. It decides about
    ratcheting if this value has no old value.
    """
    if node is None or node.constraints is None or value is None or not has_rules(node):
        return
    ratcheted_change = outer_change if change.old is MISSING else change
    rules = _compiled_rules(node)
    size = runtime.measure(value) if rules else runtime.EMPTY
    for rule in rules:
        if isinstance(rule, InvalidRule):
            yield RuleFailure(_evaluation_error(node, path, f"rule compile error: {rule}"), False)
            continue
        if rule.uses_old_self and not rule.spec.get("optionalOldSelf") and (old is MISSING or old is None):
            continue
        work = runtime.estimate_work(rule.shape, size)
        if work > runtime.LIMIT:
            raise _too_expensive(node, rule, path)
        if not budget.spend(work):
            raise _BudgetExceeded(_evaluation_error(node, path, _OUT_OF_BUDGET))
        error, is_evaluation_error = _evaluate_rule(node, rule, value, old, path)
        if error is not None:
            can_ratchet = not rule.uses_old_self and not is_evaluation_error
            yield RuleFailure(error, can_ratchet and ratcheted_change.is_unchanged)
    if type(value) is dict:
        old_values = old if type(old) is dict else {}
        properties = node.constraints.properties
        for key, inner in value.items():
            child, inner_path = properties.get(key), f"{path}.{key}" if path else key
            if child is None and node.values is not ANYTHING:
                child, inner_path = node.values, f"{path}[{key}]"
            old_inner = old_values.get(key, MISSING)
            inner_change = _Change(child, old_inner, inner)
            yield from _evaluate_node(child, inner, old_inner, inner_path, inner_change, ratcheted_change, budget)
    elif type(value) is list and node.items is not None:
        find_old = match_old_items(node, old)
        for index, item in enumerate(value):
            old_item = find_old(item)
            item_change = _Change(node.items, old_item, item)
            item_path = f"{path}[{index}]"
            yield from _evaluate_node(node.items, item, old_item, item_path, item_change, ratcheted_change, budget)


def _compiled_rules(node: Node) -> "tuple[Rule | InvalidRule, ...]":
    cached = _compiled.get(id(node))
    if cached is None:
        cached = _compiled[id(node)] = (node, tuple(_try_compile(node, spec) for spec in node.constraints.validations))
    return cached[1]


def _try_compile(node: Node, spec: dict[str, Any]) -> "Rule | InvalidRule":
    """Return the compiled rule, or its error.

    Only a schema that is being written can have invalid rules, when its default values are validated. An invalid
    messageExpression is ignored.
    """
    try:
        return compile_rule(node, spec)
    except InvalidRule as error:
        return error if error.key == "rule" else _try_compile(node, {**spec, "messageExpression": ""})


def _evaluate_rule(node: Node, rule: Rule, value: Any, old: Any, path: str) -> tuple[FieldError | None, bool]:
    """Return the error of a rule or None, and whether the evaluation itself failed."""
    rule_message = (rule.spec.get("message") or "").strip()
    rule_name = rule_message or rule.text
    invalid = InvalidValues()
    variables = _variables(node, rule, value, old, invalid)
    runtime.METER.start()
    try:
        program, is_exact = rule.guarded() if invalid.messages else (rule.program, True)
        if not is_exact:
            variables = _variables(node, rule, value, old, InvalidValues(replace_by_nan=True))
        result = program.eval(data=variables)
    except RuntimeError as error:
        if "Iteration budget exceeded" in str(error):
            raise _too_expensive(node, rule, path) from None
        message = invalid.messages[0] if invalid.messages else engine.translate_error(str(error))
        return _evaluation_error(node, path, f"{message} evaluating rule: {rule_name}"), True
    if result.type().name() == "BOOL" and result.value() is True:
        return None, False
    if not is_exact:
        return _evaluation_error(node, path, f"{invalid.messages[0]} evaluating rule: {rule_name}"), True
    if result.type().name() == "ERROR":
        message = engine.translate_error(str(result.value()))
        if message.startswith(runtime.EXCEEDED):
            raise _too_expensive(node, rule, path)
        if message.startswith("no such overload"):
            message = f"'{message}': call arguments did not match a supported operator, function or macro signature for"
        else:
            message = f"{message} evaluating"
        return _evaluation_error(node, path, f"{message} rule: {rule_name}"), True
    message = _evaluate_message(rule, variables) or rule_message or f"failed rule: {rule.text}"
    field = path + _format_field_path(node, rule.spec.get("fieldPath") or "")
    reason = rule.spec.get("reason") or "FieldValueInvalid"
    return _failure_error(reason, field.lstrip(".") or "<nil>", value, message), False


def _variables(node: Node, rule: Rule, value: Any, old: Any, invalid: InvalidValues) -> dict[str, Any]:
    """Return the values of the variables of a rule: self, oldSelf and hasOld."""
    has_old = old is not MISSING and old is not None
    variables = {"self": to_cel(node, value, invalid)}
    if rule.uses_old_self:
        variables["oldSelf"] = to_cel(node, reorder_old_value(node, old, value) if has_old else value, invalid)
        variables["hasOld"] = has_old
    return variables


def _format_field_path(node: Node | None, path: str) -> str:
    """Return the fieldPath of a rule as errors show it: keys of maps are in brackets, fields are not."""
    result = ""
    for bare_name, single_quoted, double_quoted in _FIELD.findall(path):
        key = bare_name or single_quoted or double_quoted
        is_map_key = node is not None and node.values is not None and key not in node.constraints.properties
        result += f"[{key}]" if is_map_key else f".{key}"
        node = node.constraints.properties.get(key, node.values) if node is not None else None
    return result


def _evaluation_error(node: Node, path: str, message: str) -> FieldError:
    """Return the field error for a rule that could not be evaluated."""
    return FieldError("FieldValueInvalid", path or "<nil>", f'Invalid value: "{node.type}": {message}')


def _too_expensive(node: Node, rule: Rule, path: str) -> _BudgetExceeded:
    rule_name = (rule.spec.get("message") or "").strip() or rule.text
    reason = f"'{runtime.EXCEEDED}': no further validation rules will be run due to call cost exceeds limit for rule"
    return _BudgetExceeded(_evaluation_error(node, path, f"{reason}: {rule_name}"))


def _evaluate_message(rule: Rule, variables: dict[str, Any]) -> str:
    """Return the value of messageExpression, or "" if there is none or the value is not a short line of text."""
    if rule.message_program is None:
        return ""
    runtime.METER.start()
    try:
        result = rule.message_program.eval(data=variables)
    except RuntimeError:
        return ""
    if result.type().name() != "STRING":
        return ""
    message = str(result.value()).strip()
    return "" if "\n" in message or len(message) > 5120 else message


def _failure_error(reason: str, field: str, value: Any, message: str) -> FieldError:
    is_scalar = not isinstance(value, dict | list)
    if reason == "FieldValueRequired":
        return field_errors.required(field, message)
    if reason == "FieldValueForbidden":
        return field_errors.forbidden(field, message)
    if reason == "FieldValueDuplicate":
        return field_errors.duplicate(field, value) if is_scalar else FieldError(reason, field, "Duplicate value")
    if is_scalar:
        return field_errors.invalid(field, value, message)
    return FieldError(reason, field, f"Invalid value: {message}")
