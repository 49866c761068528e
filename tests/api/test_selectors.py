"""Tests that selectors are parsed and matched as on a real server."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api import selectors

LABELS = {"app": "web", "tier": "1", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=1", True),
        ("app!=web", False),
        ("other!=web", True),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("other notin (web)", True),
        ("app", True),
        ("!app", False),
        ("!other", True),
        ("tier>0", True),
        ("tier < 1", False),
        ("app>0", False),
        ("empty=", True),
        ("empty in ()", True),
        ("in in (x)", False),
        ("x in (,a)", False),
    ],
)
def test_label_selectors(text, matches):
    assert selectors.parse_labels(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a,", "found '', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a>b", "for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)
def test_invalid_selector_error_names_the_position(text, message):
    with pytest.raises(selectors.SelectorError) as raised:
        selectors.parse_labels(text)
    assert message in str(raised.value)


@given(st.text(alphabet="ab=!<>(),in not\\", max_size=30))
def test_any_text_parses_or_raises_selector_error(text):
    for parse in (selectors.parse_labels, selectors.parse_fields):
        with contextlib.suppress(selectors.SelectorError):
            parse(text)


def test_field_selectors_unescape_and_negate():
    fields = selectors.parse_fields(r"metadata.name=a\,b,status.phase!=Running")
    values = {"metadata.name": "a,b", "status.phase": "Pending"}
    assert fields.matches(lambda path: values.get(path, ""))
    values["status.phase"] = "Running"
    assert not fields.matches(lambda path: values.get(path, ""))
