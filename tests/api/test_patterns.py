"""Tests of field patterns against the paths in managedFields."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.fields import FieldSet, format_path, path
from fairlead.api.fields.path_elements import value
from fairlead.api.fields.patterns import parse_pattern, select_fields

ITEM = {"name": "http"}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("spec.replicas", path("spec", "replicas")),
        (".spec.replicas", path("spec", "replicas")),
        ("/metadata/annotations/a.b~1c", path("metadata", "annotations", "a.b/c")),
        ("spec.ports[name=http].port", path("spec", "ports", ITEM, "port")),
        ('spec.ports[name="http"]', path("spec", "ports", ITEM)),
        ("spec.ports[port=80,protocol=TCP]", path("spec", "ports", {"port": 80, "protocol": "TCP"})),
        ('spec.ports[name="a]b,c=\\"d"]', path("spec", "ports", {"name": 'a]b,c="d'})),
        ("metadata.finalizers[=a.b/c]", (*path("metadata", "finalizers"), value("a.b/c"))),
    ],
)
def test_parse_pattern_accepts_paths_as_messages_show_them(text, meant):
    assert parse_pattern(text) == meant


@pytest.mark.parametrize(
    "text", ["", "spec..x", "spec.ports[", "spec.ports[]", "spec.ports[name]", "a[b=c,]", "a.", "."]
)
def test_parse_pattern_error_shows_the_syntax(text):
    with pytest.raises(ValueError, match=r"write it like spec\.replicas"):
        parse_pattern(text)


_NAME = st.text("abc:/", min_size=1, max_size=3)
_SCALAR = st.one_of(
    st.text(st.characters(categories=("L", "N", "P", "S")), max_size=4), st.integers(-9, 9), st.booleans()
)
_KEY = st.dictionaries(_NAME, _SCALAR, min_size=1, max_size=2)
_PARTS = st.lists(st.one_of(_NAME, _KEY), min_size=1, max_size=4).filter(lambda parts: isinstance(parts[0], str))


@given(_PARTS)
def test_formatted_path_parses_to_the_same_path(
    parts,
):  # without control characters, which Go and JSON escape differently
    meant = path(*parts)
    assert parse_pattern(format_path(meant)) == meant


def test_pattern_of_a_key_field_selects_the_item_but_not_its_other_fields():
    ports = path("spec", "ports")
    item = (*ports, *path(ITEM))
    owned_fields = FieldSet.of(ports, item, (*item, "f:name"), (*item, "f:port"), (*item, "f:tls", "f:mode"))
    assert select_fields(owned_fields, parse_pattern("spec.ports[*].name")) == FieldSet.of(item, (*item, "f:name"))
    assert select_fields(owned_fields, parse_pattern("spec.ports[*].tls")) == FieldSet.of((*item, "f:tls", "f:mode"))
    assert select_fields(owned_fields, parse_pattern("spec.ports[name=http]")) == owned_fields - FieldSet.of(ports)
    assert not select_fields(owned_fields, parse_pattern("spec.ports[name=https]"))
    assert select_fields(owned_fields, parse_pattern("spec")) == owned_fields
