"""Tests that both servers return the same errors for CEL rules with type errors."""

import json
import re

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.server.schema import structural
from fairlead.server.schema.validation import validate

pytest.importorskip("cel_expr_python")


def text(**extra_fields):
    return {"type": "string", "maxLength": 10, **extra_fields}


def list_of(items, max_items=5, **extra_fields):
    return {"type": "array", "maxItems": max_items, "items": items, **extra_fields}


def map_of(values):
    return {"type": "object", "maxProperties": 5, "additionalProperties": values}


INT, BOOL, ANYTHING = {"type": "integer"}, {"type": "boolean"}, {"x-kubernetes-preserve-unknown-fields": True}
KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
ITEM = {"type": "object", "required": ["k"], "properties": {"k": text(), "v": INT, "sub": list_of(text(), 3)}}
FIELDS = {
    "s": text(),
    "i": INT,
    "f": {"type": "number"},
    "b": BOOL,
    "t": text(format="date-time"),
    "d": text(format="duration"),
    "day": text(format="date"),
    "dt": text(format="datetime"),  # This is not a format.
    "by": text(format="byte"),
    "ios": {"x-kubernetes-int-or-string": True},
    "any": {"type": "object", **ANYTHING},
    "unk": ANYTHING,
    "o": {"type": "object", "properties": {"x": text(), "n": INT}},
    "ls": list_of(text()),
    "li": list_of(INT),
    "lf": list_of({"type": "number"}),
    "lt": list_of(text(format="date-time")),
    "lo": list_of(ITEM, **KEYED),
    "ll": list_of(list_of(BOOL)),
    "ms": map_of(text()),
    "mi": map_of(INT),
    "mo": map_of({"type": "object", "properties": {"x": text()}}),
    "ml": map_of(list_of(text(), 3)),
    "namespace": text(),
    "true": text(),
    "a-b": text(),
    "a.b": text(),
    "a_b": map_of(text()),
    "aB": map_of(text()),
    "x__y": text(),
    "1st": text(),
    "\u00e4": text(),
    "emb": {"type": "object", "x-kubernetes-embedded-resource": True, **ANYTHING},
    "nul": {**text(), "nullable": True},
}
NO_BOOL, NO_STRING = "cel expression must evaluate to a bool", "must evaluate to a string"
ANY_ERROR = "an error with another message"
# The error of each rule, or an empty string. The number is the column, and the quoted text after it a call.
RULES = {
    "self.__true__ == 'x'": '',
    'self.true': ANY_ERROR,
    "self.s == 'x'": '',
    'self.i == 1': '',
    "self.i == '1'": "8: '_==_' applied to '(int, string)'",
    'self.f == 1': "8: '_==_' applied to '(double, int)'",
    'self.f > 1': '',
    'self.f > 1.0': '',
    'self.i > 1.5': '',
    'self.f == self.i': "8: '_==_' applied to '(double, int)'",
    "self.s + self.i == 'x'": "8: '_+_' applied to '(string, int)'",
    "self.s + 'a' == 'x'": '',
    'self.b': '',
    'self.s': NO_BOOL,
    'self.i': NO_BOOL,
    'self.ios': NO_BOOL,
    'self.ios == 1': '',
    "self.ios == 'x'": '',
    'self.any.foo == 1': "9: undefined field 'foo'",
    'self.any == self.any': '',
    'self.unk == 1': "5: undefined field 'unk'",
    'has(self.unk)': "4: undefined field 'unk'",
    'has(self.any)': '',
    'has(self.o.y)': "4: undefined field 'y'",
    'has(self.o.x)': '',
    'has(self.any.z)': "4: undefined field 'z'",
    'self.o == self.o': '',
    'self.o == null': '',
    'self.s == null': "8: '_==_' applied to '(string, null)'",
    'self.nul == null': "10: '_==_' applied to '(string, null)'",
    "self.o == {'x': 'a'}": "8: '_==_' applied to '(selfType.o, map(string, string))'",
    "self.o['x'] == 'a'": "7: '_[_]' applied to '(selfType.o, string)'",
    "'x' in self.o": "5: '@in' applied to '(string, selfType.o)'",
    'size(self.o) == 1': "5: 'size' applied to '(selfType.o)'",
    'self.o.size() == 1': "12: 'size' applied to 'selfType.o.()'",
    'self.ls.all(x, x > 1)': "18: '_>_' applied to '(string, int)'",
    "self.ls.all(x, x > 'a')": '',
    "self.li.all(x, x.startsWith('a'))": "28: 'startsWith' applied to 'int.(string)'",
    "self.lo.all(x, x.k == 'a')": '',
    "self.lo.all(x, x.zz == 'a')": "17: undefined field 'zz'",
    "self.lo.all(x, x.v == 'a')": "20: '_==_' applied to '(int, string)'",
    'self.lo.all(x, x.sub.all(y, y == 1))': "31: '_==_' applied to '(string, int)'",
    "self.lo.all(x, x.sub.all(y, y == 'a'))": '',
    'self.lo.exists(x, has(x.q))': "22: undefined field 'q'",
    'self.lo.map(x, x.k).size() == 1': '',
    'self.lo.map(x, x.k) == [1]': "21: '_==_' applied to '(list(string), list(int))'",
    'self.lo.filter(x, x.v > 1).size() == 1': '',
    "self.lo[0].v == 's'": "14: '_==_' applied to '(int, string)'",
    "self.lo['a'].v == 1": "8: '_[_]' applied to '(list(selfType.lo.@idx), string)'",
    'self.ll[0][0]': '',
    'self.ll[0][0] == true': '',
    "self.ll[0][0] == 'x'": "15: '_==_' applied to '(bool, string)'",
    'self.ll.all(x, x.all(y, y))': '',
    'self.ll.all(x, x.all(y, y == 1))': "27: '_==_' applied to '(bool, int)'",
    "self.ms['a'] == 1": "14: '_==_' applied to '(string, int)'",
    "self.ms['a'] == 'x'": '',
    "self.ms.a == 'x'": '',
    "self.ms[1] == 'x'": "8: '_[_]' applied to '(map(string, string), int)'",
    'self.ms.all(k, k == 1)': "18: '_==_' applied to '(string, int)'",
    'self.ms.all(k, v, v == 1)': "21: '_==_' applied to '(string, int)'",
    "self.mo['a'].x == 'y'": '',
    "self.mo['a'].y == 'y'": "13: undefined field 'y'",
    "self.mo.a.x == 'y'": '',
    "self.ml['a'][0] == 1": "17: '_==_' applied to '(string, int)'",
    "self.ml['a'][0] == 'x'": '',
    "'a' in self.ms": '',
    '1 in self.ms': "3: '@in' applied to '(int, map(string, string))'",
    "'a' in self.li": "5: '@in' applied to '(string, list(int))'",
    '1 in self.li': '',
    'self.ls in [self.ls]': '',
    "self.t > timestamp('2020-01-01T00:00:00Z')": '',
    "self.t > '2020'": "8: '_>_' applied to '(timestamp, string)'",
    'self.t == self.s': "8: '_==_' applied to '(timestamp, string)'",
    'self.t.getFullYear() > 2000': '',
    "self.d > duration('1h')": '',
    'self.t - self.t == self.d': '',
    'self.t + self.d > self.t': '',
    'self.t + 1 > self.t': "8: '_+_' applied to '(timestamp, int)'",
    'self.day.getMonth() == 1': '',
    "self.dt.startsWith('2')": '',
    "self.dt > timestamp('2020-01-01T00:00:00Z')": "9: '_>_' applied to '(string, timestamp)'",
    "self.by == b'abc'": '',
    "self.by == 'abc'": "9: '_==_' applied to '(bytes, string)'",
    "self.lt.all(x, x > timestamp('2020-01-01T00:00:00Z'))": '',
    "self.lt.all(x, x.startsWith('a'))": "28: 'startsWith' applied to 'timestamp.(string)'",
    "self.__namespace__ == 'x'": '',
    "self.namespace == 'x'": '',
    "self.a__dash__b == 'x'": '',
    "self.a__dot__b == 'x'": '',
    "self.a_b.x == 'y'": '',
    'self.aB.x == 1': "11: '_==_' applied to '(string, int)'",
    'self.a_b.x == 1': "12: '_==_' applied to '(string, int)'",
    "self.x__underscores__y == 'x'": '',
    "self.x__y == 'x'": "5: undefined field 'x__y'",
    "self.emb.kind == 'x'": '',
    "self.emb.metadata.name == 'x'": '',
    'self.emb.metadata.labels == {}': "18: undefined field 'labels'",
    'self.emb.foo == 1': "9: undefined field 'foo'",
    "self.?s.orValue('a') == 'a'": '',
    "self.?s.orValue(1) == 'a'": "16: 'orValue' applied to 'optional_type(string).(int)'",
    "self.?zz.orValue('a') == 'a'": "5: undefined field 'zz'",
    'self.o.?x.hasValue()': '',
    "self[?'s'].hasValue()": "5: '_[?_]' applied to '(selfType, string)'",
    "self.ms[?'s'].hasValue()": '',
    "self.ms.?s.orValue('') == ''": '',
    "self.ls[?0].orValue('') == ''": '',
    "self.?o.?x.orValue('') == ''": '',
    "optional.of(self.s) == optional.of('a')": '',
    'optional.of(self.s).value() == 1': "29: '_==_' applied to '(string, int)'",
    'self.s.size() == 1': '',
    'self.i.size() == 1': "12: 'size' applied to 'int.()'",
    'size(self.b) == 1': "5: 'size' applied to '(bool)'",
    "self.s.matches('[')": '16: invalid matches argument',
    "self.s.matches('a+')": '',
    'self.s.matches(1)': "15: 'matches' applied to 'string.(int)'",
    'self.s.startsWith(1)': "18: 'startsWith' applied to 'string.(int)'",
    'self.s.foo()': "11: undeclared reference to 'foo' (in container '')",
    'foo(self.s)': "4: undeclared reference to 'foo' (in container '')",
    "self.ls.join(',') == 'a'": '',
    "self.li.join(',') == 'a'": "13: 'join' applied to 'list(int).(string)'",
    'self.li.sum() == 1': '',
    "self.ls.sum() == 'a'": "12: 'sum' applied to 'list(string).()'",
    "self.li.sum() == 'a'": "15: '_==_' applied to '(int, string)'",
    "self.li.min() == 'a'": "15: '_==_' applied to '(int, string)'",
    "self.ls.min() == 'a'": '',
    'self.ls.isSorted()': '',
    'self.lo.isSorted()': "17: 'isSorted' applied to 'list(selfType.lo.@idx).()'",
    "self.li.indexOf('a') == 1": "16: 'indexOf' applied to 'list(int).(string)'",
    "self.ls.indexOf('a') == 1": '',
    "[1, 'a'].size() == 2": "5: expected type 'int' but found 'string'",
    "{'a': 1, 'b': 'c'}.size() == 2": "15: expected type 'int' but found 'string'",
    "{1: 1, 'b': 2}.size() == 2": "8: expected type 'int' but found 'string'",
    '[1, 2.0].size() == 2': "5: expected type 'int' but found 'double'",
    '[self.s, self.i].size() == 2': "14: expected type 'string' but found 'int'",
    '[self.ios, 1].size() == 2': "12: expected type 'dyn' but found 'int'",
    "int('x') == 1": "program instantiation failed: type conversion error from 'string' to 'int'",
    'int(self.s) == 1': '',
    'int(self.o) == 1': "4: 'int' applied to '(selfType.o)'",
    "string(self.i) == '1'": '',
    "string(self.o) == '1'": "7: 'string' applied to '(selfType.o)'",
    "string(self.ls) == '1'": "7: 'string' applied to '(list(string))'",
    'double(self.s) == 1.0': '',
    'bool(self.s)': '',
    "dyn(self.i) == 'x'": '',
    'dyn(self.b)': NO_BOOL,
    'type(self.i) == int': '',
    'type(self.s) == string': '',
    'self.i == 1 ? self.s : self.i': "13: '_?_:_' applied to '(bool, string, int)'",
    "self.i == 1 ? true : 'x'": "13: '_?_:_' applied to '(bool, bool, string)'",
    'self.b ? 1 : 2': NO_BOOL,
    "(self.b ? self.s : 'x') == 'x'": '',
    'self.b && self.s': ANY_ERROR,
    'self.b && self.ios': '',
    '!self.s': "1: '!_' applied to '(string)'",
    '!self.b': '',
    '-self.i == 1': '',
    '-self.s == 1': "1: '-_' applied to '(string)'",
    'self.i + self.f > 1.0': "8: '_+_' applied to '(int, double)'",
    'self.i + 1.0 > 1.0': "8: '_+_' applied to '(int, double)'",
    'self.i / 0 == 1': '',
    'self.i % 2 == 0': '',
    'self.f % 2.0 == 0.0': "8: '_%_' applied to '(double, double)'",
    "quantity(self.s) < quantity('1')": "18: '_<_' applied to '(kubernetes.Quantity, kubernetes.Quantity)'",
    "quantity(self.s).isLessThan(quantity('1'))": '',
    'quantity(self.i).isInteger()': "9: 'quantity' applied to '(int)'",
    "quantity(self.s) == 'x'": "18: '_==_' applied to '(kubernetes.Quantity, string)'",
    "quantity(self.s) == quantity('1')": '',
    'quantity(self.s).size() == 1': "22: 'size' applied to 'kubernetes.Quantity.()'",
    "quantity('zz').isInteger()": '',
    'quantity(self.s).foo': ANY_ERROR,
    "url(self.s).getHost() == 'a'": '',
    'url(self.s) == self.s': "13: '_==_' applied to '(kubernetes.URL, string)'",
    'url(self.s) == quantity(self.s)': "13: '_==_' applied to '(kubernetes.URL, kubernetes.Quantity)'",
    'ip(self.s).family() == 4': '',
    "ip(self.s) == ip('1.2.3.4')": '',
    "ip(self.s) == '1.2.3.4'": "12: '_==_' applied to '(net.IP, string)'",
    "cidr(self.s).containsIP('1.2.3.4')": '',
    'cidr(self.s).containsIP(self.i)': "24: 'containsIP' applied to 'net.CIDR.(int)'",
    "cidr(self.s).ip().family() == 'x'": "28: '_==_' applied to '(int, string)'",
    'semver(self.s).major() == 1': '',
    'isQuantity(self.i)': "11: 'isQuantity' applied to '(int)'",
    'isURL(self.s)': '',
    'format.dns1123Label().validate(self.s).hasValue()': '',
    'format.dns1123Label().validate(self.i).hasValue()': "31: 'validate' applied to 'kubernetes.NamedFormat.(int)'",
    "format.named('x').hasValue()": '',
    'format.zzz().validate(self.s).hasValue()': "1: undeclared reference to 'format' (in container '')",
    'self.ls.sortBy(x, x) == self.ls': '',
    "self.lo.sortBy(x, x.v)[0].k == 'a'": '',
    "self.lo.sortBy(x, x.zz)[0].k == 'a'": ANY_ERROR,
    'self.li.distinct().size() == 1': '',
    "self.ls.slice(0, 1) == ['a']": '',
    'self.ls.reverse() == self.ls': '',
    'self.ll.flatten().all(x, x)': '',
    'lists.range(3).all(x, x < 3)': '',
    "sets.contains(self.ls, ['a'])": '',
    'sets.contains(self.ls, [1])': "14: 'sets.contains' applied to '(list(string), list(int))'",
    'sets.equivalent(self.li, self.ls)': "16: 'sets.equivalent' applied to '(list(int), list(string))'",
    "self.s.find('a') == 'a'": '',
    "self.s.findAll('a') == ['a']": '',
    "self.s.split(',').all(x, x == 1)": "28: '_==_' applied to '(string, int)'",
    "self.s.replace('a', 'b') == 'a'": '',
    "self.s.charAt(0) == 'a'": '',
    "self.s.substring('a') == 'a'": "17: 'substring' applied to 'string.(string)'",
    "'%s'.format([self.s]) == 'a'": '',
    "'%q'.format([self.s]) == 'a'": '12: could not parse formatting clause: unrecognized formatting clause "q"',
    "'%s %s'.format([self.s]) == 'a'": '15: index 1 out of range',
    "cel.bind(x, self.s, x == 'a')": ANY_ERROR,
    'cel.bind(x, self.s, x == 1)': ANY_ERROR,
    'oldSelf.s == self.s': '',
    'oldSelf.zz == self.s': "8: undefined field 'zz'",
    'oldSelf == self': '',
    'self == oldSelf && self.i == oldSelf.s': "27: '_==_' applied to '(int, string)'",
    'self.ls + self.ls == self.ls': '',
    'self.ls + self.li == self.ls': "9: '_+_' applied to '(list(string), list(int))'",
    'self.ls == self.li': "9: '_==_' applied to '(list(string), list(int))'",
    "self.ls != ['a']": '',
    "self.ms == {'a': 'b'}": '',
    "self.ms == {'a': 1}": "9: '_==_' applied to '(map(string, string), map(string, int))'",
    'self.ms == self.mi': "9: '_==_' applied to '(map(string, string), map(string, int))'",
    'self.i in self.ls': "8: '@in' applied to '(int, list(string))'",
    "self.ls.exists_one(x, x == 'a')": '',
    "self.ls.all(i, v, v == 'a')": '',
    "self.ls.all(i, v, i == 'a')": "21: '_==_' applied to '(int, string)'",
    "self.ls.transformList(i, v, v + 'x') == ['a']": '',
    "self.ms.transformMap(k, v, v + 'x') == {'a': 'b'}": '',
    "self.ms.transformMap(k, v, v + 1) == {'a': 'b'}": "30: '_+_' applied to '(string, int)'",
    'self.nothing': "5: undefined field 'nothing'",
    'nothing': "1: undeclared reference to 'nothing' (in container '')",
    'self.s == "a" || self.nothing': "22: undefined field 'nothing'",
    'self.': "6: Syntax error: no viable alternative at input '.'",
    'true': '',
    '1': NO_BOOL,
    "'x'": NO_BOOL,
    'null': NO_BOOL,
    'self': NO_BOOL,
    "self.s.lowerAscii().upperAscii() == 'A'": '',
    'self.s < self.s': '',
    'self.b < self.b': '',
    'self.o < self.o': "8: '_<_' applied to '(selfType.o, selfType.o)'",
    'self.ls < self.ls': "9: '_<_' applied to '(list(string), list(string))'",
    'self.ios < 3': '',
    'self.ios + 1 == 3': '',
    'self.s in self.ms': '',
    "self.metadata.name == 'x'": "5: undefined field 'metadata'",
    "self.s == 'a' && self.i == 'b' && self.b == 1": "25: '_==_' applied to '(int, string)'",
    "'%d'.format([self.i]) == 'a'": '',
    "'%f'.format([self.f]) == 'a'": '',
    "'%.2f'.format([self.f]) == 'a'": '',
    "'%e'.format([self.f]) == 'a'": '',
    "'%b'.format([self.b]) == 'a'": '',
    "'%x'.format([self.s]) == 'a'": '',
    "'%X'.format([self.by]) == 'a'": '',
    "'%o'.format([self.i]) == 'a'": '',
    "'%s'.format([self.ls]) == 'a'": '',
    "'%s'.format([self.t]) == 'a'": '',
    "'%s'.format([self.ios]) == 'a'": '',
    "'%d'.format([self.ios]) == 'a'": '',
    "'%s'.format([self.s, self.i]) == 'a'": '12: too many arguments supplied to string.format (expected 1, got 2)',
    "'%s %d'.format([self.s, self.i]) == 'a'": '',
    "'%%'.format([]) == 'a'": '',
    "'%'.format([]) == 'a'": '11: unexpected end of string',
    "'%5d'.format([1]) == 'a'": '13: could not parse formatting clause: unrecognized formatting clause "5"',
    "'%s'.format(self.ls) == 'a'": '',
    "'%z'.format(self.ls) == 'a'": '',
    "'%s'.format([[1, 'a']]) == 'a'": '',
    '[[1], []].size() == 2': '',
    '[[], [1]].size() == 2': '',
    "[{}, {'a': 1}].size() == 2": '',
    '[1, null].size() == 2': "5: expected type 'int' but found 'null'",
    '[null, 1].size() == 2': "8: expected type 'null' but found 'int'",
    '[self.o, null].size() == 2': "10: expected type 'selfType.o' but found 'null'",
    '[self.o, self.o].size() == 2': '',
    "[self.s, 'x'].size() == 2": '',
    "[self.ls, ['x']].size() == 2": '',
    "[self.t, timestamp('2020-01-01T00:00:00Z')].size() == 2": '',
    "{'a': [1], 'b': []}.size() == 2": '',
    '[optional.of(1), 2].size() == 2': "18: expected type 'optional_type(int)' but found 'int'",
    "[?self.?s, 'a'].size() == 2": '',
    "[?self.?i, 'a'].size() == 2": "12: expected type 'int' but found 'string'",
    "{?'a': self.?s, 'b': 1}.size() == 2": "22: expected type 'string' but found 'int'",
    '[1, 2u].size() == 2': "5: expected type 'int' but found 'uint'",
    "[dyn(1), 'a'].size() == 2": "10: expected type 'dyn' but found 'string'",
    "[dyn(1), dyn('a')].size() == 2": '',
    "[type(1), type('a')].size() == 2": "15: expected type 'type(int)' but found 'type(string)'",
    "self.s in ['a', 1]": "17: expected type 'string' but found 'int'",
    "self.i in [1, 2, '3'] || self.s in ['a', 1]": "18: expected type 'int' but found 'string'",
    "double('x') == 1.0": "program instantiation failed: type conversion error from 'string' to 'double'",
    "double('1.5') == 1.5": '',
    "uint('-1') == 1u": "program instantiation failed: type conversion error from 'string' to 'uint'",
    'uint(-1) == 1u': ANY_ERROR,
    'int(1e30) == 1': ANY_ERROR,
    "int('5') == 5": '',
    "bool('x')": "program instantiation failed: type conversion error from 'string' to 'bool'",
    "bool('true')": '',
    "bytes('a') == b'a'": '',
    "string(1) == '1'": '',
    'int(3.7) == 3': '',
    'timestamp(1) == timestamp(1)': '',
    "duration('x') == duration('1s')": '10: invalid duration argument',
    '1 / 0 == 1': '',
    "'a' in {'a': 1}": '',
    "self.i == int('x') && true": "program instantiation failed: type conversion error from 'string' to 'int'",
    "[int('x')].size() == 1": "program instantiation failed: type conversion error from 'string' to 'int'",
    'int("x") == 1': "program instantiation failed: type conversion error from 'string' to 'int'",
    'cel.block([1], true)': "1: undeclared reference to 'cel' (in container '')",
}  # fmt: skip
MESSAGES = {
    'self.s': '',
    'self.i': NO_STRING,
    "'a' + self.i": "5: '_+_' applied to '(string, int)'",
    'string(self.i)': '',
    'self.zz': "5: undefined field 'zz'",
    'self.ios': NO_STRING,
    'self.lo[0].k': '',
    "self.lo.map(x,x.k).join(',')": '',
    'self.li.min()': NO_STRING,
    "dyn('a')": NO_STRING,
    'self.li.sum()': NO_STRING,
}  # fmt: skip
OPTIONAL = {
    'oldSelf.hasValue()': '',
    "oldSelf.s == 'x'": "11: '_==_' applied to '(optional_type(string), string)'",
    'oldSelf.value().s == self.s': '',
    'oldSelf.value().s == self.i': "19: '_==_' applied to '(string, int)'",
    "oldSelf.orValue(self).zz == 'a'": "22: undefined field 'zz'",
    "oldSelf.?s.orValue('') == 'x'": '',
    'oldSelf.?zz.hasValue()': "8: undefined field 'zz'",
    "oldSelf.optMap(o, o.s == 'a').orValue(true)": '',
    "oldSelf.optMap(o, o.i == 'a').orValue(true)": "23: '_==_' applied to '(int, string)'",
    "self.s == 'x'": '',
}  # fmt: skip


async def rule_errors(api, rules):
    """Return a server's error for each rule of one CustomResourceDefinition, without the errors about costs."""
    spec = {"type": "object", "properties": FIELDS, "x-kubernetes-validations": rules}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    names = {"plural": "typeds", "singular": "typed", "kind": "Typed", "listKind": "TypedList"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "typeds.types.test"},
        "spec": {"group": "types.test", "scope": "Namespaced", "names": names, "versions": versions},
    }
    response = await api.transport().request(
        HttpRequest(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            query={"dryRun": "All"},
            headers={"Content-Type": "application/json"},
            body=json.dumps(body).encode(),
        )
    )
    messages = {}
    for cause in json.loads(response.body)["details"]["causes"]:
        match = re.search(r"x-kubernetes-validations\[(\d+)\]\.(rule|messageExpression)$", cause["field"])
        if match and not cause["message"].startswith("Forbidden"):
            messages[int(match[1])] = cause["message"].partition("}: ")[2].partition("\n")[0]
    return [shorten(messages.get(n, "")) for n in range(len(rules))]


def shorten(message):
    message = re.sub(r"selfType\d*", "selfType", message.removeprefix("messageExpression "))
    return message.replace("compilation failed: ERROR: <input>:1:", "").replace("found no matching overload for ", "")


def normalize(table, errors):
    """Return the errors by rule, with ANY_ERROR where the table has it."""
    return {
        rule: ANY_ERROR if table[rule] == ANY_ERROR and message else message
        for rule, message in zip(table, errors, strict=True)
    }  # fmt: skip


async def test_rule_is_checked_by_the_types_of_its_schema(api):
    assert normalize(RULES, await rule_errors(api, [{"rule": rule} for rule in RULES])) == RULES


async def test_message_expression_is_checked_by_the_types_of_its_schema(api):
    rules = [{"rule": "self.b", "messageExpression": message} for message in MESSAGES]
    assert normalize(MESSAGES, await rule_errors(api, rules)) == MESSAGES


async def test_optional_old_self_has_an_optional_type(api):
    rules = [{"rule": rule, "optionalOldSelf": True} for rule in OPTIONAL]
    assert normalize(OPTIONAL, await rule_errors(api, rules)) == OPTIONAL


def test_field_named_like_a_reserved_word_has_two_names():
    spec = {"type": "object", "properties": {"namespace": text()}}
    spec["x-kubernetes-validations"] = [{"rule": "self.namespace == 'a' && self.__namespace__ == 'a'"}]
    node = structural.compile_schema({"type": "object", "properties": {"spec": spec}})
    assert [len(validate(node, {"spec": {"namespace": name}}, None)) for name in ("a", "b")] == [0, 1]


def test_schema_without_a_type_cannot_have_rules():
    from fairlead.server.schema.crd_schema.validation import validate_crd_schema

    schema = {**ANYTHING, "x-kubernetes-validations": [{"rule": "self =="}, {"rule": "true"}]}
    (cause,) = validate_crd_schema({"type": "object", "properties": {"a": schema}}, "s")
    assert cause.reason == "InternalError"
    assert cause.field == "s.properties[a].x-kubernetes-validations"
