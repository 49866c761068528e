"""An index always finds what a search through everything would."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.cache.entries import Entry
from fairlead.cache.indexes import Index

KEYS = [("n", "a"), ("n", "b"), ("m", "a")]
value = st.sampled_from(["x", "y", "z"])
step = st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.lists(value, max_size=3)))


@given(st.lists(step, max_size=30))
def test_any_history_of_puts_and_removes(steps):
    index, truth = Index(lambda entry: tuple(entry.uid)), {}
    for key, values in steps:
        if values is None:
            index.remove(key)
            truth.pop(key, None)
        else:
            index.put(key, Entry(b"", "".join(values), 1))
            truth[key] = values
        for each in "xyz":
            assert index.keys(each) == sorted(key for key, values in truth.items() if each in values)
    for key in KEYS:
        index.remove(key)
    assert not index._keys
    assert not index._values
