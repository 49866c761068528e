"""Tests of field sets, compared with a simple model: a frozenset of paths."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.fields import FieldSet, field, format_path, index, key, path, union, value

ELEMENTS = [
    *[field(name) for name in ("a", "b", "spec", "example.com/x")],
    *[key({"name": name}) for name in ("x", "y")],
    key({"port": 80, "protocol": "TCP"}),
    key({"port": 9, "protocol": "TCP"}),
    value("x"),
    value(1),
    value(True),
    index(0),
]
paths = st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=4).map(tuple)
models = st.frozensets(paths, max_size=12)
pairs = st.tuples(models, models)


def above(short, long):
    return len(short) <= len(long) and long[: len(short)] == short


@given(pairs)
def test_field_set_operations_equal_those_of_sets_of_paths(pair):
    a, b = pair
    ours, theirs = FieldSet.of(*a), FieldSet.of(*b)
    assert frozenset(ours | theirs) == a | b
    assert frozenset(ours & theirs) == a & b
    assert frozenset(ours - theirs) == a - b
    assert (ours <= theirs) == (a <= b)
    assert (ours == theirs) == (a == b)
    assert frozenset(ours.recursive_difference(theirs)) == {p for p in a if not any(above(q, p) for q in b)}


@given(models, paths)
def test_membership_and_prefixes(model, probe):
    ours = FieldSet.of(*model)
    assert (probe in ours) == (probe in model)
    assert len(ours) == len(model)
    assert bool(ours) == bool(model)
    assert frozenset(ours.below(probe)) == {p[len(probe) :] for p in model if above(probe, p) and p != probe}
    assert frozenset(ours.within(probe)) == {p for p in model if above(probe, p)}
    assert frozenset(ours.filter(lambda p: p[0] == probe[0])) == {p for p in model if p[0] == probe[0]}


@given(models)
def test_leaves_have_no_paths_below_them(model):
    expected = {p for p in model if not any(above(p, q) and p != q for q in model)}
    assert frozenset(FieldSet.of(*model).leaves()) == expected


@given(models)
def test_fields_v1_round_trips_through_json(model):
    ours = FieldSet.of(*model)
    decoded_json = json.loads(json.dumps(ours.encode()))
    assert FieldSet.decode(decoded_json) == ours
    assert json.dumps(FieldSet.decode(decoded_json).encode()) == json.dumps(ours.encode())


@given(pairs)
def test_operations_do_not_change_their_arguments(pair):
    a, b = (FieldSet.of(*model) for model in pair)
    before = json.dumps([a.trie, b.trie])
    _ = a | b, a & b, a - b, a.recursive_difference(b), a.leaves(), union([a, b]), list(a)
    assert json.dumps([a.trie, b.trie]) == before


def test_no_field_set_contains_the_empty_path():
    assert not FieldSet.of(())
    assert () not in FieldSet.of(path("a"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({'k:{ "protocol":"TCP", "port":80.0 }': {}}, {'k:{"port":80,"protocol":"TCP"}': {}}),
        ({'v:"a&b"': {}}, {'v:"a\\u0026b"': {}}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"f:a": None, "x:future": {}}, {"f:a": {}}),
        ({"f:a": {"x:future": {}}}, {"f:a": {}}),
        ({".": {}}, {}),
        (None, {}),
    ],
)
def test_decoded_elements_are_canonical(value, expected):
    assert FieldSet.decode(value).encode() == expected


@pytest.mark.parametrize("value", [{"nonsense": {}}, {"f:a": 1}, {"k:[]": {}}, {"v:{": {}}, {"i:x": {}}, [], {"f": {}}])
def test_decode_rejects_what_is_not_fields_v1(value):
    with pytest.raises(ValueError):  # noqa: PT011
        FieldSet.decode(value)


def test_encode_uses_the_servers_order():
    value = {
        "i:0": {},
        "v:2": {},
        'v:"a"': {},
        "v:10": {},
        'k:{"port":80}': {},
        'k:{"port":9}': {},
        "f:b": {"f:x": {}, ".": {}},
        "f:B": {},
    }
    encoded = FieldSet.decode(value).encode()
    assert list(encoded) == ["f:B", "f:b", 'k:{"port":9}', 'k:{"port":80}', "v:2", "v:10", 'v:"a"', "i:0"]
    assert list(encoded["f:b"]) == [".", "f:x"]


def test_iteration_yields_members_before_paths_below_them():
    ours = FieldSet.of(path("b"), path("a", "x"), path("a"), path("b", "y"))
    assert [format_path(p) for p in ours] == [".a", ".b", ".a.x", ".b.y"]


@pytest.mark.parametrize(
    ("value", "expected_text"),
    [
        (path("spec", "containers", {"name": "x"}, "image"), '.spec.containers[name="x"].image'),
        (path("data", "key"), ".data.key"),
        (path("metadata", "annotations", "example.com/n"), ".metadata.annotations.example.com/n"),
        ((field("metadata"), field("finalizers"), value("v")), '.metadata.finalizers[="v"]'),
        (path("ports", {"protocol": "TCP", "port": 80}), '.ports[port=80,protocol="TCP"]'),
        (path("a", {"n": 1000000}), ".a[n=1e+06]"),
        (path("a", {"n": 1234567.5, "o": 0.00001, "p": None, "q": True}), ".a[n=1.2345675e+06,o=1e-05,p=null,q=true]"),
        (path("a", 3), ".a[3]"),
        ((value('a"\n\x00é\u200b'),), '[="a\\"\\n\\x00é\\u200b"]'),
    ],
)
def test_format_path_matches_conflict_messages(value, expected_text):
    assert format_path(value) == expected_text
