"""Tests that an index finds the same objects as a full search."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.cache.entries import CacheEntry
from fairlead.cache.indexes import Index
from fairlead.cache.overlay import Overlay

KEYS = [("n", "a"), ("n", "b"), ("m", "a")]
value = st.sampled_from(["x", "y", "z"])
step = st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.lists(value, max_size=3)))


@given(st.lists(step, max_size=30))
def test_index_matches_a_model_after_any_puts_and_removes(steps):
    index, model = Index(lambda entry: tuple(entry.uid)), {}
    for key, values in steps:
        if values is None:
            index.remove(key)
            model.pop(key, None)
        else:
            index.put(key, CacheEntry(b"", "".join(values), 1))
            model[key] = values
        for value in "xyz":
            assert index.keys(value) == sorted(key for key, values in model.items() if value in values)
    for key in KEYS:
        index.remove(key)
    assert not index._keys
    assert not index._values


def letters(entry):
    return tuple(entry.uid)


write = st.tuples(st.sampled_from(KEYS), st.text("xyz", min_size=1, max_size=3), st.booleans())


@given(st.lists(st.one_of(write, st.integers(0, 9), st.none()), max_size=30))
def test_overlay_index_matches_a_model_after_any_writes(steps):
    """Tests random steps: a write, a watch event, or versions that go backwards."""
    overlay, model, version, position = Overlay(), {}, 0, 0
    for step in steps:
        if step is None:
            overlay.clear()
            model.clear()
        elif isinstance(step, int):
            position = max(position, version - step)
            overlay.advance(position)
            model = {key: entry for key, entry in model.items() if entry[0] > position}
        else:
            key, values, selected = step
            version += 1
            write = overlay.begin_write()
            overlay.record(write, key, CacheEntry(b"", values, version), position, is_selected=selected)
            overlay.end_write(write)
            model[key] = (version, values if selected else "")
        for value in "xyz":
            assert overlay.find_indexed(letters, value) == sorted(
                key for key, (_, values) in model.items() if value in values
            )


def test_each_own_write_is_indexed_once():
    indexed_entries = []

    def index_letters(entry):
        indexed_entries.append(entry.uid)
        return (entry.uid,)

    overlay = Overlay()
    for version in range(1, 101):
        name = f"object-{version}"
        overlay.record(overlay.begin_write(), ("n", name), CacheEntry(b"", name, version), 0)
        assert overlay.find_indexed(index_letters, name) == [("n", name)]
    assert len(indexed_entries) == 100
