"""Tests of the functions that build validation rules."""

import pytest

from fairlead.server.registry.validation.rules import (
    EMPTY,
    NOT_EMPTY,
    SET,
    UNSET,
    Not,
    build_validator,
    each,
    field,
    first_error,
    inside,
    when,
)


def errors(*rules, new, old=None):
    return [f"{error.field}: {error.message}" for error in build_validator(*rules)(new, old)]


def test_errors_have_the_order_of_the_rules_and_the_path_of_the_field():
    rule = inside("spec", field("b").required(), each("ports", field("a").required(), field("b").at_least(1)))
    assert errors(rule, new={"spec": {"ports": [{"a": "x"}, {"b": 0}]}}) == [
        "spec.b: Required value",
        "spec.ports[1].a: Required value",
        "spec.ports[1].b: Invalid value: 0: must be greater than or equal to 1",
    ]


def test_inside_skips_an_absent_object_unless_always():
    assert errors(inside("spec", field("a").required()), new={}) == []
    assert errors(inside("spec", field("a").required(), always=True), new={}) == ["spec.a: Required value"]


def test_enum_accepts_an_absent_value_unless_always():
    assert errors(field("a").enum("X"), new={}) == []
    message = 'a: Unsupported value: "": supported values: "X"'
    assert errors(field("a").enum("X", always=True), new={}) == errors(field("a").enum("X"), new={"a": ""}) == [message]


def test_unique_compares_the_items_of_one_list():
    rule = each("lists", each("items", field("name").unique(skip_empty=True)))
    lists = [{"items": [{"name": "a"}, {}, {"name": "a"}, {}]}, {"items": [{"name": "a"}]}]
    assert errors(rule, new={"lists": lists}) == ['lists[0].items[2].name: Duplicate value: "a"']


def test_first_error_stops_at_the_first_rule_with_errors():
    rule = first_error(field("a", "b").required(), field("c").required())
    assert errors(rule, new={}) == ["a: Required value", "b: Required value"]
    assert errors(rule, new={"a": 1, "b": 1}) == ["c: Required value"]


def test_immutable_compares_with_the_old_object_by_dotted_path():
    rule = field("spec.selector").immutable()
    assert errors(rule, new={"spec": {"selector": 2}}) == []
    assert errors(rule, new={"spec": {"selector": 2}}, old={"spec": {"selector": 1}}) == [
        "spec.selector: Invalid value: 2: field is immutable"
    ]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"a": "x"}, True),
        ({"a": "y"}, False),
        ({"a": ("x", "y")}, True),
        ({"a": Not(["x", "y"])}, False),
        ({"a": SET, "empty": SET, "absent": UNSET}, True),
        ({"empty": EMPTY, "absent": EMPTY, "a": NOT_EMPTY}, True),
        ({"a": "x", "empty": NOT_EMPTY}, False),
        (lambda scope: scope.get("a") == "x", True),
    ],
)
def test_condition_is_a_function_or_a_map_of_expected_values(condition, holds):
    assert bool(errors(when(condition, field("b").required()), new={"a": "x", "empty": ""})) is holds
