"""Tests of the YAML parser for files that a person wrote."""

import pytest

from fairlead.api import documents


def test_parse_all_skips_empty_documents():
    assert documents.parse_all("a: 1\n---\n---\n- 2\n") == [{"a": 1}, [2]]
    assert documents.parse_all(b"") == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: [", "not YAML at line 2: "),
        ("a: b: c", "not YAML at line 1: mapping values are not allowed in this context"),
        ("a: !!python/name:os.system x", "not YAML at line 1: could not determine a constructor for the tag"),
        (b"\xff\x00", "not YAML"),
        ("a: \x00", "not YAML"),
        ("[" * 5000, "not YAML"),
    ],
)
def test_invalid_yaml_error_is_one_line_with_the_line_number(text, says):
    with pytest.raises(documents.InvalidYaml) as raised:
        documents.parse_all(text)
    assert str(raised.value).startswith(says)
    assert "\n" not in str(raised.value)


def test_parse_one_rejects_two_documents():
    assert documents.parse_one("") is None
    with pytest.raises(documents.InvalidYaml, match="expected one YAML document, found 2"):
        documents.parse_one("1\n---\n2")
