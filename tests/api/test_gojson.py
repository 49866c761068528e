"""Tests of JSON output, compared with recorded output of Go's encoder and, if `go` is installed, with Go itself."""

import json
import math
import shutil
import struct
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api import gojson
from fairlead.api.objects import Object

# A value, and the output of Go's json.Marshal.
RECORDED = [
    ("x?a=1&b=2", rb'"x?a=1\u0026b=2"'),
    ("<b>", rb'"\u003cb\u003e"'),
    ("\u2028\u2029", rb'"\u2028\u2029"'),
    ("\x85\x7f\ufeff", '"\x85\x7f\ufeff"'.encode()),
    ("\x00\b\f\n\r\t\x1f", rb'"\u0000\b\f\n\r\t\u001f"'),
    ('"\\/', rb'"\"\\/"'),
    ("naïve 😀", '"naïve 😀"'.encode()),
    (1.0, b"1"),
    (-0.0, b"-0"),
    (0.1, b"0.1"),
    (1e-6, b"0.000001"),
    (9.99e-7, b"9.99e-7"),
    (1e-7, b"1e-7"),
    (1e-10, b"1e-10"),
    (1e20, b"100000000000000000000"),
    (123456789012345678901.0, b"123456789012345680000"),
    (1e21, b"1e+21"),
    (-1.5e300, b"-1.5e+300"),
    (5e-324, b"5e-324"),
    (True, b"true"),
    (None, b"null"),
    (2**63 - 1, b"9223372036854775807"),
    ({"b": 1, "a": [1.5, 2.0], "é": {}, "A": []}, '{"A":[],"a":[1.5,2],"b":1,"é":{}}'.encode()),
]


@pytest.mark.parametrize(("value", "encoded"), RECORDED)
def test_dumps_encodes_values_as_go_does(value, encoded):
    assert gojson.dumps(value) == encoded


texts = st.text(st.characters(exclude_categories=("Cs",)))
numbers = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), numbers, texts)
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)


@given(values)
def test_encoded_value_decodes_to_the_same_value(value):
    same = json.loads(json.dumps(value), parse_int=float)  # 1e17 may be written without an exponent
    assert json.loads(gojson.dumps(value), parse_int=float) == same
    assert json.loads(gojson.yaml_dumps(value), parse_int=float) == same


@given(values)
def test_dumps_does_not_change_its_argument(value):
    before = json.dumps(value)
    gojson.dumps(value)
    assert json.dumps(value) == before


@given(texts)
def test_yaml_dumps_escapes_what_yaml_changes_or_rejects(text):
    raw = gojson.yaml_dumps(text).decode()
    assert not [c for c in raw if "\x7f" <= c <= "\x9f" or c in "\ufeff\ufffe\uffff\u2028\u2029"]


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [-math.inf]}, "\ud800", {1: 2}, object()])
def test_dumps_rejects_values_that_json_cannot_express(value):
    with pytest.raises(ValueError, match="not JSON"):
        gojson.dumps(value)


def test_object_encodes_as_its_dict():
    assert gojson.dumps(Object({"metadata": {"name": "a"}})) == b'{"metadata":{"name":"a"}}'


ORACLE = """package main

import ("bufio"; "encoding/json"; "os")

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	for in.Scan() {
		var v any
		if err := json.Unmarshal(in.Bytes(), &v); err != nil { panic(err) }
		out, err := json.Marshal(v)
		if err != nil { panic(err) }
		os.Stdout.Write(append(out, '\\n'))
	}
}
"""


@pytest.fixture(scope="module")
def go_marshal(tmp_path_factory):
    """Return the output of Go's encoder for the values."""
    go_command = shutil.which("go")
    if go_command is None:
        pytest.skip("needs go; the recorded rows stand in for it")
    folder = tmp_path_factory.mktemp("oracle")
    (folder / "main.go").write_text(ORACLE)
    subprocess.run([go_command, "build", "-o", "oracle", "main.go"], cwd=folder, check=True, timeout=100)

    def marshal(values):
        lines = "".join(json.dumps(value) + "\n" for value in values)
        completed = subprocess.run(
            [folder / "oracle"], input=lines.encode(), capture_output=True, check=True, timeout=20
        )
        return completed.stdout.split(b"\n")[:-1]

    return marshal


# Go parses every number as a float64, so larger integers are only in the recorded rows.
go_leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), numbers, texts)
go_values = st.recursive(go_leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)
any_bits = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])


@settings(max_examples=15, deadline=None)
@given(st.lists(go_values | any_bits.filter(math.isfinite), min_size=1, max_size=80))
def test_go_encodes_every_value_equally(go_marshal, values):
    assert [gojson.dumps(value) for value in values] == go_marshal(values)


def test_recorded_go_output_is_equal(go_marshal):
    rows = [row for row in RECORDED if not isinstance(row[0], int) or abs(row[0]) < 2**53]
    assert go_marshal([value for value, _ in rows]) == [encoded for _, encoded in rows]


@pytest.mark.parametrize(
    ("value", "text"),
    [(3e10, "3e+10"), (1234567.5, "1.2345675e+06"), (123456.7, "123456.7"), (1.5e-05, "1.5e-05"), (1e-4, "0.0001")],
)
def test_format_percent_v_formats_floats_as_go_does(value, text):
    assert gojson.format_percent_v(value) == text
