"""Tests that objects that are kept as JSON because they were not used recently are decoded to equal objects."""

import json

from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.app import Server
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.http.messages import Request
from fairlead.server.storage.stored import RecentlyUsed, Stored

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer()),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text("ab/.", max_size=3), inner)),
    max_leaves=10,
)


def store_undecoded(obj):
    recent = RecentlyUsed(limit=1)
    stored = Stored(obj, 1)
    recent.add(stored)
    recent.add(Stored({}, 2))
    return stored


@given(st.dictionaries(st.text("abc"), VALUES, max_size=4))
def test_object_is_equal_after_it_was_kept_as_json(obj):
    stored = store_undecoded(obj)
    assert exactly_equal(stored.object, obj)
    assert list(stored.object) == list(obj)


def test_undecoded_object_keeps_only_its_json():
    stored = store_undecoded({"a": "b"})
    encoded = stored.encoded
    assert stored._object is None
    assert stored._derived is None
    assert stored.object is stored.object, "decoded once"
    assert stored.encoded is encoded


def test_only_recently_used_objects_stay_decoded():
    recent = RecentlyUsed(limit=3)
    stored_objects = [Stored({"i": i}, i) for i in range(10)]
    for stored in stored_objects:
        recent.add(stored)
    assert stored_objects[0].object == {"i": 0}
    assert [stored.version for stored in stored_objects if stored._object is not None] == [0, 8, 9]


def test_responses_do_not_depend_on_the_number_of_decoded_objects(monkeypatch):
    def responses(limit):
        monkeypatch.setattr(RecentlyUsed.__init__, "__defaults__", (limit,))
        server = Server()
        maps = "/api/v1/namespaces/default/configmaps"

        def send(method, path, body=None, content_type="application/json", **query):
            headers = {"user-agent": "t", "content-type": content_type}
            encoded_body = json.dumps(body).encode() if body is not None else b""
            answer = server.respond(Request(method, path, {k: [v] for k, v in query.items()}, headers, encoded_body))
            return answer.status, _remove_varying(json.loads(answer.body))

        results = [send("POST", maps, {"metadata": {"name": f"m{i}", "labels": {"i": str(i)}}}) for i in range(5)]
        for i in range(5):
            apply = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{i}"}, "data": {"k": str(i)}}
            results += [
                send("PATCH", f"{maps}/m{i}", apply, "application/apply-patch+yaml", fieldManager=manager)
                for manager in ("a", "a", "b")  # The second apply changes nothing.
            ]
            results.append(send("PATCH", f"{maps}/m{i}", {"data": {"l": "x"}}, "application/merge-patch+json"))
        results.append(send("GET", maps, labelSelector="i in (1, 3)"))
        results.append(send("DELETE", f"{maps}/m2"))
        results.append(send("GET", maps, limit="2"))
        return results

    assert responses(1) == responses(1000)


def _remove_varying(value):
    """Return a response without the fields that differ between servers."""
    if isinstance(value, dict):
        return {k: _remove_varying(v) for k, v in value.items() if k not in ("uid", "creationTimestamp", "time")}
    return [_remove_varying(item) for item in value] if isinstance(value, list) else value
