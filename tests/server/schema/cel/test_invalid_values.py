"""Tests of CEL rules on values that do not match their schema. The conformance recordings cover most cases."""

import pytest

from fairlead.server.schema import cel, structural

INTEGER = {"type": "integer"}
WRONG_TYPE = "invalid data, expected int, got float64"


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
def test_rule_with_optionals_reports_an_invalid_value(rule):
    """Tests an optional value that is passed to a function: the engine would crash."""
    numbers = {"type": "object", "additionalProperties": INTEGER}
    schema = {"type": "object", "properties": {"a": INTEGER, "b": INTEGER, "m": numbers}}
    assert failures(schema, rule, {"a": 1, "b": 2, "m": {}}) == []
    assert [WRONG_TYPE in message for message in failures(schema, rule, {"a": 1.0, "b": 2, "m": {}})] == [True]


def test_invalid_value_that_no_rule_reads_is_ignored():
    schema = {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}}
    assert failures(schema, "self.b == 2 && (true || self.a == 1)", {"a": 1.0, "b": 2}) == []


def test_missing_old_value_skips_the_invalid_value():
    assert failures(INTEGER, "!oldSelf.hasValue() || self == oldSelf.value()", 1.0, old=True) == []


@pytest.mark.parametrize(
    "rule", ["self.all(x, duration(x) == duration('1s'))", "self.map(x, timestamp(x)).size() == 1"]
)
def test_times_created_in_a_rule_are_valid(rule):
    schema = {"type": "object", "properties": {"t": {"type": "array", "items": {"type": "string"}}, "i": INTEGER}}
    time_text = "1s" if "duration" in rule else "2020-01-01T00:00:00Z"
    assert failures(schema, rule.replace("self", "self.t"), {"t": [time_text], "i": 1.0}) == []


def test_invalid_value_in_a_large_list_adds_no_work():
    schema = {"type": "array", "items": INTEGER}
    assert [WRONG_TYPE in message for message in failures(schema, "self.all(x, x >= 0)", [*range(2000), 1.0])] == [True]
