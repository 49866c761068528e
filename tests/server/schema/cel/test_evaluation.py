from uuid import UUID

import pytest

from fairlead.server.schema import cel, structural
from fairlead.server.schema.crd_schema.validation import validate_crd_schema
from fairlead.server.schema.validation import validate

pytest.importorskip("cel_expr_python")


def schema(x, *rules, **extra_fields):
    rules = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    inner = {**x, "x-kubernetes-validations": rules}
    spec = {"type": "object", "properties": {"x": inner, "y": {"type": "string"}}}
    return {"type": "object", "properties": {"spec": spec}, **extra_fields}


def evaluate(x, rule, value, old=None):
    """Return the errors of one field `x` with a rule, as text."""
    old_object = None if old is None else {"spec": {"x": old}}
    errors = validate(structural.compile_schema(schema(x, rule)), {"spec": {"x": value}}, old_object)
    return [f"{c.field}: {c.message}" for c in errors]


STRING, INT = {"type": "string"}, {"type": "integer"}
INTS = {"type": "array", "items": INT}
MAP = {"type": "object", "additionalProperties": STRING}
DATES = {"type": "array", "items": {"type": "string", "format": "date"}}
NEW = "timestamp('2021-01-01T00:00:00Z')"
POINT = {"type": "object", "properties": {"a": INT, "b": INT, "at": {"type": "string", "format": "date-time"}}}


@pytest.mark.parametrize(
    ("x", "rule", "valid_value", "invalid_value"),
    [
        (STRING, "self.size() > 0", "a", ""),
        (DATES, f"self.all(day, day < {NEW})", ["2020-01-01"], ["2022-01-01"]),
        ({"type": "array", "items": DATES}, f"self[0][0] < {NEW}", [["2020-01-01"]], [["2022-01-01"]]),
        (
            {"type": "object", "additionalProperties": DATES},
            f"self.a[0] < {NEW}",
            {"a": ["2020-01-01"]},
            {"a": ["2022-01-01"]},
        ),
        ({"type": "object", "properties": {"a": {**INT, "nullable": True}}}, "!has(self.a)", {"a": None}, {"a": 1}),
        (INTS, "self.all(i, i > 0) && self.sum() < 10 && self.isSorted()", [1, 2], [2, 1]),
        (INTS, "self.indexOf(3) == 1", [0, 3], [3]),
        (STRING, "quantity(self).add(quantity('1')).isLessThan(quantity('3'))", "1500m", "2"),
        (STRING, "isURL(self) && url(self).getHost() == 'a.example.com:80'", "http://a.example.com:80/x", "http://b/"),
        (STRING, "isIP(self) && ip(self).family() == 6", "::1", "10.0.0.1"),
        (STRING, "cidr('10.0.0.0/8').containsIP(self)", "10.1.1.1", "11.1.1.1"),
        (STRING, "self.find('[0-9]+') == '42'", "ab42", "ab"),
        (STRING, "sets.contains(['a', 'b'], [self])", "a", "c"),
        (STRING, "ip(self).isGlobalUnicast() && string(ip(self)) == self", "10.0.0.1", "127.0.0.1"),
        (STRING, "ip(self).isLinkLocalMulticast()", "224.0.0.1", "1.1.1.1"),
        (STRING, "ip.isCanonical(self)", "2001:db8::1", "2001:DB8::1"),
        (
            STRING,
            "cidr(self).masked() == cidr('10.0.0.0/8') && cidr(self).ip() == ip('10.0.0.1')",
            "10.0.0.1/8",
            "1.1.1.1/8",
        ),
        (STRING, "isCIDR(self)", "1.2.3.4/8", "1.2.3.4/08"),
        (STRING, "isURL(self)", "http://a/%20", "http://a/%zz"),
        (STRING, "isURL(self)", "/x", "http://a b/"),
        (STRING, "isSemver(self) && semver(self).isLessThan(semver('1.10.0'))", "1.10.0-rc.1", "1.10.0+build"),
        (STRING, "isSemver(self, true) && semver(self, true).major() == 1", "v01.2", "2"),
        (STRING, "isSemver(self)", "1.2.3", "01.2.3"),
        (STRING, "sign(quantity(self)) == -1", "-1", "0"),
        (INTS, "self.sort().reverse().slice(0, 1) == [3] && self.distinct().size() == 2", [1, 3, 3], [3]),
        (INTS, "[self, [1]].flatten().size() == 2 && lists.range(2) == [0, 1]", [1], []),
        ({"type": "string", "format": "byte"}, "self == b'a'", "YQ==", "Yg=="),
        ({"type": "number"}, "self > 1", 1.5, 1),
        (
            POINT,
            "self.at > timestamp('2024-01-01T00:00:00Z')",
            {"at": "2024-01-02T00:00:00Z"},
            {"at": "2023-01-02T00:00:00Z"},
        ),
        (
            {"type": "string", "format": "date-time"},
            "self.getFullYear() == 2024",
            "2024-05-05T00:00:00Z",
            "2025-05-05T00:00:00Z",
        ),
        ({"x-kubernetes-int-or-string": True}, "type(self) == int ? self < 10 : self == '50%'", "50%", 10),
        ({"type": "number"}, "self / 2.0 < 2.0", 3, 5),
        (STRING, "!format.dns1123Label().validate(self).hasValue()", "a-b", "A"),
        (STRING, "format.named('uuid').value().validate( self ).orValue([]).size() == 0", str(UUID(int=1)), "x"),
        (STRING, "!format.named(self).hasValue() || format.named(self).value() == format.uri()", "uri", "date"),
        (INTS, "self.all(i, v, i < v) && self.exists(i, v, i + v == 5) && self.exists_one(i, v, v > 2)", [1, 2, 3], []),
        (INTS, "self.transformList(i, v, i > 0, v * i) == [2, 6]", [1, 2, 3], [1]),
        (INTS, "self.transformMap(i, v, v + 1)[1] == 3", [1, 2], [1, 1]),
        (MAP, "self.transformMapEntry(k, v, {v: k}) == {'x': 'a'} && self.all(k, v, k < v)", {"a": "x"}, {"b": "x"}),
        (INTS, "self.sortBy(x, -x) == [3, 2, 1] && [[2], [1]].sortBy(l, l[0])[0] == [1]", [2, 3, 1], [1]),
        (STRING, "(self + 'x').split('x').sortBy(p, -p.size())[0] == 'ab'", "ab", ""),
        (STRING, "quantity(self) == quantity('1k') && url('/?a&b=%zz').getQuery() == {'a': ['']}", "1000", "1"),
        (STRING, "semver(self) == semver('1.2.3+b') && ![[1]].exists(x, x == [2])", "1.2.3", "1.2.4"),
        ({"type": "object", "properties": {"a-b": STRING}}, "self.a__dash__b == 'x'", {"a-b": "x"}, {"a-b": "y"}),
    ],
)
def test_rule_accepts_the_good_and_rejects_the_bad_value(x, rule, valid_value, invalid_value):
    assert evaluate(x, rule, valid_value) == []
    assert len(evaluate(x, rule, invalid_value)) == 1


@pytest.mark.parametrize(
    ("rule", "value", "problem"),
    [
        ("self.isSorted() && self.min() == 1 && self.max() == 1", [1, "1"], ""),
        ("self.isSorted()", [2, 1, "a"], "failed rule"),
        ("self.sort() == self", [1, "1"], "list elements must have the same type"),
        ("self.sum() == 1", [1, "1"], "'no such overload': call arguments did not match"),
        ("self.sum() == 1", ["b", "a"], "'no such overload: sum(list)': call arguments did not match"),
    ],
)
def test_list_functions_do_not_order_numbers_and_strings(rule, value, problem):
    errors = evaluate({"type": "array", "items": {"x-kubernetes-int-or-string": True}}, rule, value)
    assert [problem in error for error in errors] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("rule", "value", "problem"),
    [
        ("self.isSorted()", [1, None], "'no such overload': call arguments did not match"),
        ("self.isSorted()", [2, 1, None], "failed rule"),
        ("self.min() == 1", [1, None], "'no such overload': call arguments did not match"),
        ("self.max() == 1", [None, 1], "'no such overload: max(list)': call arguments did not match"),
        ("self.sort() == self", [None, None], "list elements must be comparable"),
    ],
)
def test_list_functions_do_not_order_nulls(rule, value, problem):
    (error,) = evaluate({"type": "array", "items": {"type": "integer", "nullable": True}}, rule, value)
    assert problem in error


def test_rule_may_contain_a_message_literal():
    x = {"type": "object", "properties": {"d": {"type": "string", "format": "duration"}}}
    rule = "self.d == google.protobuf.Duration{seconds: 60, nanos: 0}"
    assert (evaluate(x, rule, {"d": "1m"}), len(evaluate(x, rule, {"d": "2m"}))) == ([], 1)


def test_failure_has_the_real_servers_message():
    assert evaluate(STRING, "self == 'x'", "y") == ["spec.x: Invalid value: \"y\": failed rule: self == 'x'"]
    assert evaluate(INTS, {"rule": "self.size() > 1", "message": "two"}, [1]) == ["spec.x: Invalid value: two"]
    rule = {
        "rule": "self.a > 0",
        "reason": "FieldValueForbidden",
        "fieldPath": ".a",
        "messageExpression": "'a is %d'.format([self.a])",
    }
    assert evaluate(POINT, rule, {"a": 0}) == ["spec.x.a: Forbidden: a is 0"]


@pytest.mark.parametrize(
    ("x", "rule", "value", "error"),
    [
        (POINT, "self.a < self.b", {"a": 1}, '"object": no such key: b'),
        (INTS, "self[2] == 1", [1], '"array": index out of bounds: 2'),
        (INT, "10 / self > 1", 0, '"integer": division by zero'),
        (STRING, "int(self) > 1", "x", "\"string\": type conversion error from 'string' to 'int'"),
        (INTS, "self.min() > 1", [], '"array": min called on empty list'),
    ],
)
def test_evaluation_error_is_a_validation_error(x, rule, value, error):
    assert evaluate(x, rule, value) == [f"spec.x: Invalid value: {error} evaluating rule: {rule}"]


def test_transition_rule_is_skipped_without_an_old_value():
    assert evaluate(INT, "self >= oldSelf", 1) == []
    assert evaluate(INT, "self >= oldSelf", 1, 2) == ["spec.x: Invalid value: 1: failed rule: self >= oldSelf"]
    first = {"rule": "oldSelf.orValue('none') != 'none' || self == 'first'", "optionalOldSelf": True}
    assert len(evaluate(STRING, first, "second")) == 1
    assert evaluate(STRING, first, "second", "first") == []


def test_optional_old_self_is_an_optional_object():
    rule = {"rule": "oldSelf.optMap(x, x.a == self.a).orValue(true)", "optionalOldSelf": True}
    x = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert evaluate(x, rule, {"a": "1"}) == []
    assert evaluate(x, rule, {"a": "1"}, {"a": "1"}) == []
    assert evaluate(x, rule, {"a": "2"}, {"a": "1"}) != []
    by_field = "!oldSelf.hasValue() || !oldSelf.?a.hasValue() || self.a == oldSelf.a.value()"
    assert evaluate(x, {"rule": by_field, "optionalOldSelf": True}, {"a": "2"}, {"a": "1"}) != []


@pytest.mark.parametrize(
    ("path", "expected"), [("['b-c']", "x.b-c"), (".m['k']", "x.m[k]"), (".b.m['k.l']", "x.b.m[k.l]")]
)
def test_field_path_shows_map_keys_in_brackets(path, expected):
    m = {"type": "object", "additionalProperties": {"type": "string"}}
    b = {"type": "object", "properties": {"m": m}}
    x = {"type": "object", "properties": {"b-c": {"type": "string"}, "m": m, "b": b}}
    rule = {"rule": "false", "fieldPath": path}
    assert evaluate(x, rule, {}) == [f"spec.{expected}: Invalid value: failed rule: false"]


def test_comparison_with_old_self_ignores_the_order_of_a_set():
    assert evaluate({**INTS, "x-kubernetes-list-type": "set"}, "self == oldSelf", [2, 1], [1, 2]) == []
    assert len(evaluate(INTS, "self == oldSelf", [2, 1], [1, 2])) == 1


def test_rule_that_fails_on_an_unchanged_value_only_warns():
    node = structural.compile_schema(schema(STRING, "self != 'bad'"))
    old, new = {"spec": {"x": "bad"}}, {"spec": {"x": "bad", "y": "new"}}
    warned = []
    assert validate(node, new, old, warn=warned.append) == []
    assert warned == ["spec.x: Invalid value: \"bad\": failed rule: self != 'bad'"]


def test_rules_are_not_checked_if_the_object_is_invalid():
    errors = validate(structural.compile_schema(schema(STRING, "self != 'bad'")), {"spec": {"x": 5}})
    assert [c.field for c in errors] == ["spec.x", "<nil>"]


@pytest.mark.parametrize(
    ("x", "rule", "message"),
    [
        (INT, "self ==", "Syntax error"),
        (INT, "self == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        (INT, "self.size() > 1", "found no matching overload for 'size' applied to 'int.()'"),
        (INT, "self + 1", "cel expression must evaluate to a bool"),
        (POINT, "self.c > 1", "<input>:1:5: undefined field 'c'"),
        (POINT, "has(self.c)", "<input>:1:4: undefined field 'c'"),
        (INT, "(" * 300 + "self" + ")" * 300 + " > 1", "ERROR: <input>:-1:0: expression recursion limit exceeded"),
        (INT, " + ".join(["self"] * 300) + " > 1", "ERROR: <input>:-1:0: expression recursion limit exceeded"),
        (INT, "self > int(1e400)", "<input>:1:12: invalid double literal"),
        (STRING, f"self == '{'x' * 100_000}'", "expression code point size exceeds limit: size: 100010, limit 100000"),
    ],
)
def test_rule_that_does_not_compile_is_rejected(x, rule, message):
    errors = validate_crd_schema(schema(x, rule), "s")
    assert [c.field for c in errors] == ["s.properties[spec].properties[x].x-kubernetes-validations[0].rule"]
    assert message in errors[0].message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("self.c", "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'c'"),
        ("self.a", "messageExpression must evaluate to a string"),
        ("'a' + self.a", "found no matching overload for '_+_' applied to '(string, int)'"),
    ],
)
def test_message_expression_is_checked_by_the_schema(expression, message):
    point = {**POINT, "x-kubernetes-validations": [{"rule": "self.a > 0", "messageExpression": expression}]}
    (cause,) = validate_crd_schema({"type": "object", "properties": {"spec": point}}, "s")
    assert cause.field == "s.properties[spec].x-kubernetes-validations[0].messageExpression"
    assert message in cause.message


def test_rules_are_rejected_without_the_extra(monkeypatch):
    monkeypatch.setattr(cel, "is_available", lambda: False)
    assert "pip install 'fairlead[cel]'" in validate_crd_schema(schema(INT, "self > 1"), "s")[0].message


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("self.a == 'x'", "<input>:1:8: found no matching overload for '_==_' applied to '(int, string)'"),
        ("has(self.a) && self.a.size() > 3", "<input>:1:27: found no matching overload for 'size' applied to 'int.()'"),
        ("math.abs(self.a) == 2", "<input>:1:1: undeclared reference to 'math' (in container '')"),
        ("self.a", "cel expression must evaluate to a bool"),
    ],
)
def test_rule_with_a_type_error_is_rejected_in_the_definition(rule, problem):
    (cause,) = validate_crd_schema(schema(POINT, rule), "s")[:1]
    assert problem in cause.message
    assert "self_a" not in cause.message


MANY = list(range(1000))
EXPENSIVE = {
    "nested loops": (INTS, "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))", MANY),
    "nested loops over a literal": (
        INTS,
        f"{MANY}.all(a, {MANY}.all(b, a + b >= 0))",
        [],
    ),
    "whole object in each iteration": (INTS, "self.all(a, self.size() > 0)", list(range(9000))),
    "long text in each iteration": (
        {"type": "object", "properties": {"l": INTS, "s": STRING}},
        "self.l.all(a, !self.s.contains('ab'))",
        {"l": MANY, "s": "a" * 2_000_000},
    ),
    "set comparison": (INTS, "sets.contains(self, self)", list(range(20_000))),
    "text that grows": (STRING, "self.replace('a', self).size() > 0", "a" * 100_000),
    "text that grows repeatedly": (STRING, "self" + ".replace('a', 'aaaaaaaaaa')" * 12 + " != ''", "a"),
    "text that doubles repeatedly": (STRING, "[self]" + ".map(a, a + a)" * 20 + ".size() > 0", "a" * 50),
    "list that grows": (STRING, "[1]" + ".map(a, [a, a, a, a, a, a, a, a, a, a]).flatten()" * 9 + " != []", "a"),
    "list built in a loop": (INTS, "self.filter(a, a >= 0) != []", list(range(9000))),
    "long list from a range": (STRING, "lists.range(100000000) != []", ""),
    "long list in each iteration": (STRING, "lists.range(9999).all(i, lists.range(100000) != [])", ""),
    "map built in each iteration": (INTS, "self.transformMap(i, v, v) != {}", list(range(9000))),
    "map of the whole object": (INTS, "self.transformMap(i, v, self) != {}", MANY),
    "list of the whole object as text": (INTS, "'%s'.format([self.map(a, self)]) != ''", list(range(2000))),
    "join with a long separator": (
        {"type": "array", "items": STRING},
        "self.join(self.join('')) != ''",
        ["a" * 99] * 999,
    ),
}


@pytest.mark.parametrize("case", EXPENSIVE)
def test_expensive_rule_fails_without_being_evaluated(case):
    x, rule, value = EXPENSIVE[case]
    node = structural.compile_schema(schema(x, rule, "false"))
    (error,) = validate(node, {"spec": {"x": value}})
    assert error.field == "spec.x"
    assert "operation cancelled: actual cost limit exceeded': no further validation rules will be run" in error.message
    assert error.message.endswith(f"exceeds limit for rule: {rule}")


def test_rules_that_are_too_expensive_together_are_stopped():
    node = structural.compile_schema(schema({"type": "array", "items": {**INT, **RULED}}))
    errors = validate(node, {"spec": {"x": list(range(50_000))}})
    assert errors[-1].message == (
        'Invalid value: "integer": validation failed due to running out of cost budget, no further validation rules '
        "will be run"
    )
    assert len(errors) == 1


RULED = {"x-kubernetes-validations": [{"rule": "self >= 0"}]}


@pytest.mark.parametrize(
    ("x", "rule", "value"),
    [
        (INTS, "self.all(a, a >= 0)", list(range(9000))),
        (INTS, "self.all(a, self.exists_one(b, a == b))", list(range(90))),
        ({"type": "array", "items": STRING}, "self.all(a, a.contains('x'))", ["x" * 500] * 5000),
        (STRING, "self.matches('^(a+)+$')", "a" * 1_000_000),
        (STRING, "self.replace('a', 'b').size() > 0", "a" * 5000),
    ],
)
def test_rule_with_reasonable_work_is_evaluated(x, rule, value):
    assert evaluate(x, rule, value) == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    {
        "'%s'.format([[1, 'a', 1.5, null, b'x']])": '[1, "a", 1.500000, null, b"x"]',
        "'%s'.format([{'b': ['x'], 'a': {}}])": '{"a":{}, "b":["x"]}',
        "'%s %d %.2f %e'.format(['s', 3, 1.555, 1234.5])": "s 3 1.55 1.234500×10⁰³",
        "'%x %X %o %b'.format([255, 'j', 8, 5])": "ff 6A 10 101",
        "'%s %s %s %s'.format([1.0, 1e20, 1.0 / 0.0, true])": "1 1e+20 +Inf true",
        "'%s %s'.format([duration('1.5s'), timestamp('2024-01-01T00:00:00Z')])": "1.5s 2024-01-01T00:00:00Z",
        "'%s %%'.format([type(1)])": "int %",
        "'a b c'.split(' ', 2).join('-') + 'abc'.charAt(3) + strings.quote('q')": 'a-b c"q"',
        "'tacocat'.substring(2, 4) + string('tacocat'.lastIndexOf('a', 4))": "co1",
        "format.dns1035Label().validate('1').orValue(['good'])[0].substring(0, 16)": "a DNS-1035 label",
    }.items(),
)
def test_message_expression_formats_like_a_real_server(expression, expected):
    rule = {"rule": "self == 'never'", "messageExpression": expression}
    assert evaluate(STRING, rule, "x") == [f'spec.x: Invalid value: "x": {expected}']


def test_integer_overflow_is_an_evaluation_error():
    (error,) = evaluate(INTS, "self.sum() > 0", [2**62, 2**62])
    assert "integer overflow evaluating rule" in error


@pytest.mark.parametrize(
    "expression", ["timestamp('x') != self.t", "duration('x') != duration('1s')", "'a'.matches('[')"]
)
def test_invalid_time_and_pattern_literals_are_rejected_in_the_definition(expression):
    x = {"type": "object", "properties": {"t": {"type": "string", "format": "date-time"}}}
    (error,) = validate_crd_schema(schema(x, expression), "schema")
    assert f"argument\n | {expression}\n | " in error.message
    assert "compilation failed: ERROR: <input>:1:" in error.message
