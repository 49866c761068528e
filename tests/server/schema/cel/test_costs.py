"""Tests of the worst-case cost estimates of CEL rules. Both servers must agree with the table.

Each rule belongs to a value that may occur so often that its cost exceeds the limit. The error message contains the
factor by which it does, with six decimal places, so the test detects any other estimate.
"""

import json
import math
import re

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.server.registry.validation import definitions

pytest.importorskip("cel_expr_python")

LIMIT = 10_000_000
TEXT = {"type": "string", "maxLength": 20}
INT = {"type": "integer"}
VALUE = {
    "type": "object",
    "required": ["s", "n"],
    "properties": {
        "s": TEXT,
        "t": {"type": "string"},
        "n": INT,
        "d": {"type": "number"},
        "b": {"type": "boolean"},
        "e": {"type": "string", "enum": ["aa", "bbbb"]},
        "l": {"type": "array", "maxItems": 7, "items": TEXT},
        "u": {"type": "array", "maxItems": 9, "items": {"type": "string"}},
        "ul": {"type": "array", "items": INT},
        "ni": {"type": "array", "maxItems": 5, "items": INT},
        "m": {"type": "object", "maxProperties": 6, "additionalProperties": TEXT},
        "um": {"type": "object", "additionalProperties": INT},
        "o": {
            "type": "object",
            "properties": {
                "x": TEXT,
                "y": {
                    "type": "array",
                    "maxItems": 3,
                    "items": {"type": "object", "properties": {"k": TEXT, "v": INT}},
                },
            },
        },
        "i": {"x-kubernetes-int-or-string": True},
        "is": {"x-kubernetes-int-or-string": True, "maxLength": 11},
        "dt": {"type": "string", "format": "date-time"},
        "du": {"type": "string", "format": "duration"},
        "da": {"type": "string", "format": "date"},
        "by": {"type": "string", "format": "byte", "maxLength": 40},
        "ll": {"type": "array", "maxItems": 4, "items": {"type": "array", "maxItems": 3, "items": INT}},
        "em": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    },
}
COSTS = [
    (2, 'self.n == 1'),
    (3, "self.s == 'abc'"),
    (12, 'self.s == self.t'),
    (5, 'self.s != self.e'),
    (21, "self.s + 'x' == self.s"),
    (7, 'self.s.size() < 5 && self.n > 3'),
    (6, 'size(self.l) > 2 || self.b'),
    (45, 'self.l.all(x, x.size() > 2)'),
    (45, "self.l.all(ip, ip.size() > 2)"),
    (38, "self.l.all(x, x == 'abc')"),
    (45, "self.l.exists(x, x.startsWith('a'))"),
    (95, 'self.l.exists_one(x, x.endsWith(self.s))'),
    (169, "self.l.map(x, x + 'q').size() > 1"),
    (169, "self.l.filter(x, x.contains('ab')).size() > 1"),
    (168, 'self.l.map(x, x.size() > 1, x).all(y, y == self.s)'),
    (20, "self.s.matches('^[a-z]+$')"),
    (2_831_196, "self.u.all(x, x.matches('^a'))"),
    (7_864_318, 'self.ul.all(x, x > 1)'),
    (8, 'self.ni.sum() > 3'),
    (65, 'self.l.isSorted()'),
    (1_572_866, 'self.ul.min() == 1'),
    (66, "self.l.indexOf('a') == 1"),
    (11, "self.s.indexOf('a') == 1"),
    (11, "self.s.lastIndexOf('b') > 2"),
    (39, 'self.m.all(k, k.size() > 1)'),
    (51, "self.m.all(k, self.m[k] == 'a')"),
    (3_595_115, 'self.um.all(k, self.um[k] > 2)'),
    (33, "self.m.exists(k, k == 'x')"),
    (9, "'a' in self.l"),
    (3, "'a' in self.m"),
    (15, 'self.n in [1,2,3]'),
    (14, "self.s in ['a','b']"),
    (4, "self.m['a'] == 'b'"),
    (4, "self.m.a == 'b'"),
    (4, "self.l[0] == 'x'"),
    (13, 'self.o.x == self.s'),
    (31, "self.o.y.all(q, q.k == 'x' && q.v > 2)"),
    (78, 'self.o.y.map(q, q.k).exists(z, z == self.s)'),
    (169, 'self.o.y.all(a, self.o.y.exists(b, a.k == b.k))'),
    (3, 'has(self.s) && has(self.o.x)'),
    (6, '!has(self.t) || self.t.size() > 1'),
    (5, "self.b ? self.s == 'a' : self.t == 'b'"),
    (5, "(self.b ? self.s : self.e) == 'x'"),
    (3, 'self.i == 5'),
    (4, 'type(self.i) == string'),
    (8, 'type(self.i) == int ? self.i > 3 : self.i.size() > 2'),
    (3, "self.is == 'x'"),
    (4, "self.dt < timestamp('2020-01-01T00:00:00Z')"),
    (8, 'self.dt == self.dt'),
    (4, "self.du > duration('1h')"),
    (4, 'self.da.getFullYear() > 2000'),
    (4, 'self.by.size() > 3'),
    (3, "self.by == b'abc'"),
    (4, "string(self.n) == '1'"),
    (7, "string(self.by) == 'a'"),
    (11, "bytes(self.s) == b'a'"),
    (4, 'int(self.s) > 1'),
    (6, 'double(self.n) > self.d'),
    (11, "self.s.lowerAscii() == 'x'"),
    (314_593, 'self.s.upperAscii() == self.t.upperAscii()'),
    (11, "self.s.substring(1) == 'x'"),
    (19, "self.s.substring(1,2).trim() == 'x'"),
    (19, "self.s.replace('a','bcd') == 'x'"),
    (28, "self.s.replace('abc','b') == self.t"),
    (19, "self.s.replace('','b') == 'x'"),
    (22, "self.s.replace(self.e,'bcd').size() > 3"),
    (339, "self.s.split(',').all(x, x == 'a')"),
    (27, "self.s.split(',', 2).all(x, x == 'a')"),
    (59, "self.l.join() == 'x'"),
    (118, "self.l.join(',') == self.t"),
    (116, "self.l.join(',').contains('abc')"),
    (21, "self.s.find('[a-z]+') == 'x'"),
    (22, "self.s.findAll('[a-z]+').size() > 1"),
    (341, "self.s.findAll('[a-z]+').all(x, x == 'q')"),
    (4, "self.s.charAt(1) == 'x'"),
    (16, "'%s-%d'.format([self.s, self.n]) == 'x'"),
    (314_586, "self.t.format([]) == 'x'"),
    (11, "strings.quote(self.s) == 'x'"),
    (3, "self.s < 'abc'"),
    (12, 'self.s <= self.t'),
    (3, 'self.n <= 5'),
    (7, 'self.n + 1 > self.n * 2'),
    (4, '-self.n < 4'),
    (4, 'self.d / 2.0 > 1.0'),
    (4, 'self.n % 2 == 0'),
    (83, 'self.ll.all(x, x.all(y, y > 1))'),
    (4, 'self.ll[0][1] == 3'),
    (19, 'self.ll.flatten().size() > 2'),
    (8, 'self.l + self.l == self.l'),
    (46, "(self.l + ['a']).all(x, x == 'b')"),
    (32, '[1,2,3].all(x, x < self.n)'),
    (25, "['a','bb'].exists(x, x == self.s)"),
    (39, "{'a': 1, 'b': 2}.all(k, k == 'a')"),
    (34, "{'a': self.s}['a'] == 'x'"),
    (16, "[self.s, self.e][0] == 'x'"),
    (27, "sets.contains(self.l, ['a','b'])"),
    (68, 'sets.intersects(self.l, self.u)'),
    (33, 'sets.equivalent(self.ni, [1,2])'),
    (119, 'self.l.sort() == self.l'),
    (65, 'self.ni.sort()[0] > 2'),
    (20, 'self.ni.reverse().size() > 2'),
    (116, 'self.l.distinct().size() == self.l.size()'),
    (17, 'self.ni.slice(1, 3).size() > 1'),
    (42, 'lists.range(5).all(x, x > 2)'),
    (99, 'self.o.y.sortBy(q, q.v).size() > 1'),
    (101, "self.o.y.sortBy(q, q.k)[0].k == 'a'"),
    (15, "isURL(self.s) && url(self.s).getHost() == 'x'"),
    (14, 'url(self.s) == url(self.e)'),
    (22, 'isIP(self.s) && ip(self.s).family() == 4'),
    (12, "ip(self.s) == ip('1.2.3.4')"),
    (18, 'ip.isCanonical(self.s)'),
    (25, "isCIDR(self.s) && cidr(self.s).containsIP('1.2.3.4')"),
    (17, 'cidr(self.s).containsIP(ip(self.e))'),
    (20, 'cidr(self.s).containsCIDR(self.e)'),
    (18, "cidr(self.s).containsCIDR(cidr('10.0.0.0/8'))"),
    (13, 'cidr(self.s).ip().family() == 4'),
    (13, 'cidr(self.s).masked().prefixLength() == 8'),
    (12, "quantity(self.s).isGreaterThan(quantity('1'))"),
    (14, 'quantity(self.s) == quantity(self.e)'),
    (14, "quantity(self.s).add(1).compareTo(quantity('2')) == 0"),
    (10, 'isQuantity(self.s)'),
    (12, 'semver(self.s).major() > 1'),
    (10, 'isSemver(self.s)'),
    (12, "semver('1.0.0') == semver(self.s)"),
    (261, '!format.dns1123Label().validate(self.s).hasValue()'),
    (2, "format.named('uuid').hasValue()"),
    (18_446_744_073_709_551_615, "format.dns1123Label().validate(self.s).orValue([]).all(x, x == 'a')"),
    (4, "self.?t.orValue('') == 'x'"),
    (5, "self.?b == oldSelf.?b"),
    (13, "self.?o.x.orValue('') == self.s"),
    (5, "self.?m['a'].orValue('b') == 'c'"),
    (4, "self.m[?'a'].hasValue()"),
    (1_844_674_407_370_955_284, "self.?t.optMap(x, x + 'a').orValue('') == 'q'"),
    (18_446_744_073_709_551_615, "self.?l.orValue([]).all(x, x == 'a')"),
    (5, 'optional.of(self.n).value() == 1'),
    (52, "self.l.all(i, x, i > 2 && x == 'a')"),
    (33, 'self.m.all(k, v, k == v)'),
    (39, "self.m.exists(k, v, v == 'a')"),
    (32, "self.l.exists_one(i, x, x == 'a')"),
    (169, "self.l.transformList(i, x, x + 'a').size() > 1"),
    (136, "self.m.transformMap(k, v, v + 'a').all(k, k == 'a')"),
    (71, "self.m.transformMap(k, v, k == 'a', v.size()).size() > 2"),
    (120, "self.l.transformList(i, x, i > 1, x)[0] == 'a'"),
    (4, "dyn(self.s) == 'a'"),
    (5, 'dyn(self.l).size() > 2'),
    (9, "self.em.kind == 'Pod' && self.em.metadata.name == 'x'"),
    (4, "self.em.apiVersion.startsWith('v1')"),
    (13, "self.n > 1 && self.n < 5 && self.s == 'abcdef' && self.l.size() > 2"),
    (12_369_499_521_026, 'self.ul.all(a, self.ul.all(b, a == b))'),
    (2_246_948, "self.um.all(k, k.matches('x'))"),
    (7, "self.dt - self.dt > duration('1s')"),
    (4, 'self.dt.getHours() == 3'),
    (15, '[self.n, 2].max() == 3'),
    (3_689_348_814_741_910_543, "['a', self.s].max() == 'a'"),
    (357, "self.l.map(x, {'k': x}).all(y, y.k == 'a')"),
    (217, "self.l.map(x, [x]).all(y, y[0] == 'a')"),
    (121, "self.l.filter(x, x == 'a') == self.l"),
    (2, 'self == self'),
    (4, 'self.o == self.o'),
    (5, 'self.m == self.m'),
    (18, 'self.o.y[0].k == self.o.y[1].k'),
    (1_844_674_407_370_955_369, "self.l.map(x, x).join() == 'a'"),
    (119, 'self.l.map(x, x.size()).sum() > 3'),
    (3, "matches(self.s, 'a+')"),
    (4, 'uint(self.n) == 1u'),
    (1, 'null == null'),
    (1, '1 < 2.0'),
    (8, "b'ab' + self.by == b'abc'"),
    (4, 'self.i + 1 > 2'),
    (3, "self.i.startsWith('a')"),
    (14, 'self.i in [1,2]'),
    (934, 'self.l.exists(x, self.u.exists(y, x == y))'),
    (52, 'self.l.all(x, x in self.m)'),
    (108, 'self.l.all(x, x in self.u)'),
    (48, "true ? self.l.size() == 1 : self.u.all(x, x == 'a')"),
    (134, "self.m.map(k, self.m[k]).all(x, x == 'q')"),
    (134, "self.m.filter(k, k.size() > 2).all(x, x == 'z')"),
    (12, 'self.s == oldSelf.s'),
    (731, 'self.l.all(x, oldSelf.l.exists(y, x == y))'),
    (5, 'self.n >= oldSelf.n'),
]  # fmt: skip
OPTIONAL = [  # Rules with optionalOldSelf.
    (7, "oldSelf.hasValue() ? self.s == oldSelf.value().s : true"),
    (20, "oldSelf.optMap(o, o.s == self.s).orValue(true)"),
    (2**64 - 1, "oldSelf.?l.orValue([]).all(x, x in self.l)"),
    (7, "!oldSelf.hasValue() || oldSelf.value().l.all(x, x == 'a')"),
]
REMEDY = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
WHOLE = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"


def exceeded(cost, limit=LIMIT, cost_name="estimated rule cost"):
    factor = cost / limit
    factor_text = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"Forbidden: {cost_name} exceeds budget by factor of {factor_text} {REMEDY}"


def definition(**properties):
    names = {"plural": "dears", "singular": "dear", "kind": "Dear", "listKind": "DearList"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "costs.test", "scope": "Namespaced", "names": names, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": "dears.costs.test"}, "spec": spec}


async def rule_errors(api, body):
    """Return a server's errors for a CustomResourceDefinition, by field."""
    response = await api.transport().request(
        HttpRequest(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            query={"dryRun": "All"},
            headers={"Content-Type": "application/json"},
            body=json.dumps(body).encode(),
        )
    )
    root = r"spec\.validation\.openAPIV3Schema(\.properties\[spec\]\.properties)?"
    causes = (json.loads(response.body).get("details") or {}).get("causes") or []
    errors = {}
    for cause in causes:
        errors.setdefault(re.sub(root, "", cause["field"]), []).append(cause["message"])
    return errors


def with_rules(schema, *rules, **extra_fields):
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **extra_fields} for rule in rules]}


def list_of(items, max_items=None):
    return {"type": "array", "items": items} | ({"maxItems": max_items} if max_items is not None else {})


@pytest.mark.parametrize(("rows", "extra_fields"), [(COSTS, {}), (OPTIONAL, {"optionalOldSelf": True})])
async def test_cost_of_a_rule_equals_the_table(api, rows, extra_fields):
    occurrences = [math.ceil(1.2 * LIMIT / cost) for cost, _ in rows]
    errors = await rule_errors(
        api,
        definition(
            **{
                f"r{n}": {
                    "type": "object",
                    "maxProperties": occurrences[n],
                    "additionalProperties": with_rules(VALUE, rule, **extra_fields),
                }
                for n, (_, rule) in enumerate(rows)
            }
        ),
    )
    rules = [errors[f"[r{n}].additionalProperties.x-kubernetes-validations[0].rule"] for n in range(len(rows))]
    assert {row: rule[0] for row, rule in zip(rows, rules, strict=True)} == {
        row: exceeded(min(2**64 - 1, row[0] * times)) for row, times in zip(rows, occurrences, strict=True)
    }


@pytest.mark.parametrize(
    ("schema", "cost"),
    [
        # A request limits how often a value occurs: an integer needs a byte and a comma, an object its required fields.
        (list_of(with_rules(INT, "self + self + self + self + self + self > 1")), 12 * (3 * 1024 * 1024 // 2)),
        (list_of(with_rules({"type": "boolean"}, "self || self || self || self || [self] == [self]")), 27 * 629_145),
        (list_of(with_rules({**VALUE, "required": ["s", "n", "o"]}, "[self.n] == [self.n]", "self.n > 1")), None),
        (list_of(list_of(list_of(with_rules(TEXT, "self == 'abc' + self"), 900), 50), 50), 2_250_000 * 19),
        (list_of(list_of(with_rules(TEXT, "self == 'abc' + self")), 50), 1_048_576 * 19),
        (
            {"type": "object", "additionalProperties": list_of(with_rules(TEXT, "self == 'abc' + self"), 50)},
            1_048_576 * 19,
        ),
    ],
)
async def test_cost_of_a_rule_is_multiplied_by_the_occurrences_of_its_value(api, schema, cost):
    errors = await rule_errors(api, definition(a=schema))
    messages = [message for messages in errors.values() for message in messages]
    assert messages == ([exceeded(cost)] if cost is not None else [])


async def test_total_cost_of_all_rules_of_a_definition_is_limited(api):
    """Tests many rules that are each below their own limit. The error names the four most expensive rules."""
    schemas = [with_rules(list_of(INT, 900 - n), "self.all(x, x > 1)") for n in range(30)]
    errors = await rule_errors(api, definition(**{f"a{n}": list_of(inner, 900) for n, inner in enumerate(schemas)}))
    most_expensive = [f"[a{n}].items.x-kubernetes-validations[0].rule" for n in range(4)]
    assert sorted(errors) == sorted(["", *most_expensive])
    assert errors[""][0].startswith(f"Forbidden: {WHOLE} exceeds budget by factor of 1.")
    assert errors[most_expensive[0]] == [
        "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    ]


async def test_message_expression_has_its_own_cost(api):
    message = "self.l.map(x, x + 'q').join(',')"
    errors = await rule_errors(api, definition(a=with_rules(VALUE, "self.n > 1", messageExpression=message)))
    assert errors["[a].x-kubernetes-validations[0].messageExpression"][0] == exceeded(
        2**60, cost_name="estimated messageExpression cost"
    )


def test_expensive_rule_of_a_stored_definition_is_accepted():
    """Tests an update of a CRD that a server version without cost estimates has stored."""
    new = definition(a=list_of(with_rules({"type": "string"}, "self.matches('a+')")))
    assert any("exceeds budget" in cause.message for cause in definitions.validate_definition(new, None))
    old = {**new, "spec": {**new["spec"], "scope": "Cluster"}}
    assert not any(
        "estimated rule cost exceeds" in cause.message for cause in definitions.validate_definition(new, old)
    )
