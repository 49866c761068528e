"""Rules on values that do not fit their schema; what a real server says of most is kept as a history."""

import pytest

from fairlead.server.schema import cel, structural

INTEGER = {"type": "integer"}
TOLD = "invalid data, expected int, got float64"


def failures(schema, rule, value, old=None):
    schema = {**schema, "x-kubernetes-validations": [{"rule": rule, **({"optionalOldSelf": True} if old else {})}]}
    node = structural.compile_schema({"type": "object", "properties": {"spec": schema}})
    return [failure.error.message for failure in cel.evaluate_rules(node, {"spec": value}, None)]


@pytest.mark.parametrize(
    "rule",
    [
        "self.?a.orValue(7) == 1",
        "self.m[?'x'].orValue(self.a) == 1",
        "optional.of(self.a) == optional.of(1)",
        "[self.?a].all(x, x == optional.of(1))",
        "self.?a.optMap(x, x + 1).orValue(0) == 2",
    ],
)
def test_a_rule_with_optionals_is_told_of_a_misfit(rule):
    """The engine would crash if an optional were handed to a function."""
    numbers = {"type": "object", "additionalProperties": INTEGER}
    schema = {"type": "object", "properties": {"a": INTEGER, "b": INTEGER, "m": numbers}}
    assert failures(schema, rule, {"a": 1, "b": 2, "m": {}}) == []
    assert [TOLD in told for told in failures(schema, rule, {"a": 1.0, "b": 2, "m": {}})] == [True]


def test_a_misfit_that_no_rule_looks_at_is_let_be():
    schema = {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}}
    assert failures(schema, "self.b == 2 && (true || self.a == 1)", {"a": 1.0, "b": 2}) == []


def test_an_old_value_that_is_not_there_hides_what_does_not_fit():
    assert failures(INTEGER, "!oldSelf.hasValue() || self == oldSelf.value()", 1.0, old=True) == []


@pytest.mark.parametrize(
    "rule", ["self.all(x, duration(x) == duration('1s'))", "self.map(x, timestamp(x)).size() == 1"]
)
def test_times_made_in_a_rule_are_no_misfits(rule):
    schema = {"type": "object", "properties": {"t": {"type": "array", "items": {"type": "string"}}, "i": INTEGER}}
    text = "1s" if "duration" in rule else "2020-01-01T00:00:00Z"
    assert failures(schema, rule.replace("self", "self.t"), {"t": [text], "i": 1.0}) == []


def test_a_large_list_with_a_misfit_is_no_more_work_than_one_without():
    schema = {"type": "array", "items": INTEGER}
    assert [TOLD in told for told in failures(schema, "self.all(x, x >= 0)", [*range(2000), 1.0])] == [True]
