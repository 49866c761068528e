"""Numbers that a body may hold are never overlooked, however it is spelled."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.golang import encoding

TEXTS = st.text(' :,[-"\\\n19.eE', max_size=6)
WHOLE = st.one_of(TEXTS, st.booleans(), st.none(), st.integers(-(10**17), 10**17))
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False)
SPACES = st.sampled_from(["", " ", "\n", "\t", "\r"])


def _around(other, inner):
    """Lists and maps of anything that hold one of these."""
    lists = st.tuples(st.lists(other, max_size=2), inner).map(lambda each: [*each[0], each[1]])
    maps = st.tuples(st.dictionaries(TEXTS, other, max_size=2), TEXTS, inner)
    return st.one_of(lists, maps.map(lambda each: {**each[0], each[1]: each[2]}))


@given(st.recursive(FRACTIONS, lambda inner: _around(st.one_of(inner, WHOLE), inner)), SPACES, SPACES)
def test_a_fraction_is_found_wherever_it_stands(value, before, after):
    body = json.dumps([value], separators=(f"{before},{after}", f"{before}:{after}")).encode()
    assert encoding.has_fractions(body)


@pytest.mark.parametrize("text", ["nginx:1.25", "v1.2", "4e1b-9e", "10.0.0.1", "2026-11-16T11:38:10.5Z"])
def test_no_fraction_is_seen_in_images_versions_and_uids(text):
    assert not encoding.has_fractions(json.dumps({"a": text, "b": [text, 1]}, separators=(",", ":")).encode())


@pytest.mark.parametrize("spaces", ["", " "])
def test_a_number_too_long_for_an_integer_is_found(spaces):
    assert encoding.has_fractions(b'{"a":%s%d}' % (spaces.encode(), 10**18))
    assert not encoding.has_fractions(b'{"a":%s%d}' % (spaces.encode(), 10**17))
