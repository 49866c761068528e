"""Tests that a JSON patch behaves like the library of a real server and does not modify its input."""

import contextlib
import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.patches import json_patch

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.text("ab&<é", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)
paths = st.lists(st.sampled_from(["a", "b", "c", "0", "1", "-", "-1"]), min_size=1, max_size=3).map(
    lambda parts: "/" + "/".join(parts)
)
operations = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
            "path": paths,
            "from": paths,
            "value": values,
        }
    ),
    max_size=5,
)


def patched(document, *ops):
    return json_patch.apply(document, json_patch.decode(json.dumps(ops).encode()))


@given(document=st.dictionaries(st.sampled_from("abc"), values), ops=operations)
def test_apply_never_changes_the_document_in_place(document, ops):
    before = copy.deepcopy(document)
    with contextlib.suppress(json_patch.CannotApply):
        patched(document, *ops)
    assert document == before


@pytest.mark.parametrize(
    ("document", "op", "result"),
    [
        ({}, {"op": "replace", "path": "/a", "value": 1}, {"a": 1}),
        ({}, {"op": "copy", "from": "/x", "path": "/a"}, {"a": None}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/-1"}, {"a": [1]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a~/": 1}, {"op": "remove", "path": "/a~0~1"}, {}),
        ({}, {"op": "test", "path": "/a", "value": None}, {}),
        ({"a": {"x": 1}}, {"op": "move", "from": "/a", "path": "/b"}, {"b": {"x": 1}}),
    ],
)
def test_operation_differs_from_rfc_6902_like_the_real_server(document, op, result):
    assert patched(document, op) == result


@pytest.mark.parametrize(
    ("document", "body", "passes"),
    [
        ({"u": "a&b"}, rb'[{"op":"test","path":"/u","value":"a\u0026b"}]', True),
        ({"u": "a&b"}, rb'[{"op":"test","path":"/u","value":"a&b"}]', False),
        ({"u": "é"}, '[{"op":"test","path":"/u","value":"é"}]'.encode(), True),
        ({"u": "é"}, rb'[{"op":"test","path":"/u","value":"\u00e9"}]', False),
        ({"n": 1}, b'[{"op":"test","path":"/n","value":1.0}]', False),
        ({"m": {"b": [1], "a": 2}}, b'[{"op":"test","path":"/m","value":{"a": 2, "b": [1]}}]', True),
        ({"a": [1]}, b'[{"op":"test","path":"/a/1","value":null}]', False),
    ],
)
def test_test_operation_compares_values_as_go_encodes_them(document, body, passes):
    def test():
        return json_patch.apply(document, json_patch.decode(body))

    if passes:
        assert test() == document
    else:
        with pytest.raises(json_patch.CannotApply):
            test()


@pytest.mark.parametrize(
    ("added", "tested", "passes"),
    [("1.0", "1.0", True), ("1.0", "1", False), ('"\\u0061"', '"a"', False), ('{"x": 1e0}', '{"x":1e0}', True)],
)
def test_test_operation_compares_the_bytes_of_a_value_that_the_patch_added(added, tested, passes):
    body = f'[{{"op":"add","path":"/a","value":{added}}},{{"op":"test","path":"/a","value":{tested}}}]'
    if passes:
        assert json_patch.apply({}, json_patch.decode(body.encode())) == {"a": json.loads(added)}
    else:
        with pytest.raises(json_patch.CannotApply):
            json_patch.apply({}, json_patch.decode(body.encode()))


def test_copies_of_one_patch_are_limited_to_three_megabytes():
    document = {"a": "x" * (1024 * 1024 - 2)}  # One megabyte with its quotes.
    copies = [{"op": "copy", "from": "/a", "path": f"/{index}"} for index in range(4)]
    assert len(patched(document, *copies[:3])) == 4
    with pytest.raises(json_patch.CannotApply):
        patched(document, *copies)
    with pytest.raises(json_patch.CannotApply):  # Each copy contains the copies before it.
        patched({"l": ["x" * 1000]}, *[{"op": "copy", "from": "/l", "path": "/l/-"}] * 12)
