"""Tests that YAML is read as a real server reads it."""

import pytest

from fairlead.server.golang import encoding, yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(word, True) for word in ("y", "Yes", "on", "TRUE")],
        *[(word, False) for word in ("n", "No", "off", "false")],
        *[(word, None) for word in ("", "~", "null")],
        ("yEs", "yEs"),
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("010", 8),
        ("0o7", 7),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e30", 1e30),
        ("9223372036854775808", 9223372036854775808.0),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("2001-12-14T21:59:43Z", "2001-12-14T21:59:43Z"),
        ("1.2.3", "1.2.3"),
        ("0x", "0x"),
        ("089", 89),
        ("'1'", "1"),
        ('"yes"', "yes"),
        ("!!str 1", "1"),
        ("=", "="),
    ],
)
def test_plain_scalar_has_the_value_that_go_reads(text, value):
    read = yaml.read(f"k: {text}\n".encode())[0]["k"]
    assert read == value
    assert type(read) is type(value)


def test_read_returns_the_first_document():
    assert yaml.read(b"a: 1\n---\na: 2\n") == ({"a": 1}, [])
    assert yaml.read(b"") == (None, [])


def test_keys_become_strings_and_aliases_are_expanded():
    assert yaml.read(b"1: a\ntrue: &x {b: c}\nz: *x\nm: {<<: *x, d: e}\n")[0] == {
        "1": "a",
        "true": {"b": "c"},
        "z": {"b": "c"},
        "m": {"b": "c", "d": "e"},
    }


def test_duplicate_key_is_reported_with_its_line():
    assert yaml.read(b"a: 1\nb: 2\na: 3\n") == ({"a": 3, "b": 2}, ['line 3: key "a" already set in map'])
    assert yaml.read(b'{"a": 1, "a": 2}')[1] == ['line 1: key "a" already set in map']


def test_whole_floats_in_json_become_integers():
    assert yaml.read(b'{"a": 1.0, "b": [2.5, 3.0]}')[0] == {"a": 1, "b": [2.5, 3]}
    assert type(yaml.read(b'{"a": 1.0}')[0]["a"]) is int


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"apiVersion: v1\nkind: [ConfigMap\n", "yaml: line 2: did not find expected ',' or ']'"),
        (b"a: &a [*a]\n", "yaml: anchor value contains itself"),
        (b"a: .nan\n", "json: unsupported value: .nan"),
        (
            b"a: &a ["
            + b"x," * 99
            + b"]\n"
            + b"".join(
                b"b%d: &b%d [%s]\n" % (i, i, b",".join([b"*%s" % (b"a" if i == 0 else b"b%d" % (i - 1))] * 99))
                for i in range(5)
            ),
            "excessive aliasing",
        ),
    ],
)
def test_invalid_document_is_rejected_with_the_reason(body, message):
    with pytest.raises(encoding.BadJSON, match=message.replace("[", r"\[")):
        yaml.read(body)
