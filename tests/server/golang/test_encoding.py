"""Tests that `has_fractions` finds every unusual number in a body, in any formatting."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.golang import encoding

TEXTS = st.text(' :,[-"\\\n19.eE', max_size=6)
WHOLE = st.one_of(TEXTS, st.booleans(), st.none(), st.integers(-(10**17), 10**17))
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False)
SPACES = st.sampled_from(["", " ", "\n", "\t", "\r"])


def _containers(other, inner):
    """Return a strategy for lists and maps that contain an `inner` value."""
    lists = st.tuples(st.lists(other, max_size=2), inner).map(lambda pair: [*pair[0], pair[1]])
    maps = st.tuples(st.dictionaries(TEXTS, other, max_size=2), TEXTS, inner)
    return st.one_of(lists, maps.map(lambda parts: {**parts[0], parts[1]: parts[2]}))


@given(st.recursive(FRACTIONS, lambda inner: _containers(st.one_of(inner, WHOLE), inner)), SPACES, SPACES)
def test_has_fractions_finds_a_fraction_anywhere(value, before, after):
    body = json.dumps([value], separators=(f"{before},{after}", f"{before}:{after}")).encode()
    assert encoding.has_fractions(body)


@pytest.mark.parametrize("text", ["nginx:1.25", "v1.2", "4e1b-9e", "10.0.0.1", "2026-11-16T11:38:10.5Z"])
def test_has_fractions_ignores_images_versions_and_uids(text):
    assert not encoding.has_fractions(json.dumps({"a": text, "b": [text, 1]}, separators=(",", ":")).encode())


@pytest.mark.parametrize("spaces", ["", " "])
def test_has_fractions_finds_a_number_too_long_for_an_integer(spaces):
    assert encoding.has_fractions(b'{"a":%s%d}' % (spaces.encode(), 10**18))
    assert not encoding.has_fractions(b'{"a":%s%d}' % (spaces.encode(), 10**17))
