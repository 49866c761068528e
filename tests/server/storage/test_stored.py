"""Objects that nobody has used for a while are kept as JSON alone, and are the same when they are used again."""

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


def resting(obj):
    recent = RecentlyUsed(limit=1)
    stored = Stored(obj, 1)
    recent.add(stored)
    recent.add(Stored({}, 2))
    return stored


@given(st.dictionaries(st.text("abc"), VALUES, max_size=4))
def test_an_object_is_the_same_after_a_rest(obj):
    stored = resting(obj)
    assert exactly_equal(stored.object, obj)
    assert list(stored.object) == list(obj)


def test_an_object_that_rests_keeps_its_json_and_nothing_else():
    stored = resting({"a": "b"})
    encoded = stored.encoded
    assert stored._object is None
    assert stored._derived is None
    assert stored.object is stored.object, "in use again"
    assert stored.encoded is encoded


def test_only_the_last_used_are_decoded():
    recent = RecentlyUsed(limit=3)
    many = [Stored({"i": i}, i) for i in range(10)]
    for stored in many:
        recent.add(stored)
    assert many[0].object == {"i": 0}
    assert [stored.version for stored in many if stored._object is not None] == [0, 8, 9]


def test_a_server_whose_objects_rest_answers_as_one_whose_objects_never_do(monkeypatch):
    def answers(most):
        monkeypatch.setattr(RecentlyUsed.__init__, "__defaults__", (most,))
        server = Server()
        maps = "/api/v1/namespaces/default/configmaps"

        def send(method, path, body=None, content_type="application/json", **query):
            headers = {"user-agent": "t", "content-type": content_type}
            data = json.dumps(body).encode() if body is not None else b""
            answer = server.respond(Request(method, path, {k: [v] for k, v in query.items()}, headers, data))
            return answer.status, _timeless(json.loads(answer.body))

        found = [send("POST", maps, {"metadata": {"name": f"m{i}", "labels": {"i": str(i)}}}) for i in range(5)]
        for i in range(5):
            apply = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{i}"}, "data": {"k": str(i)}}
            found += [
                send("PATCH", f"{maps}/m{i}", apply, "application/apply-patch+yaml", fieldManager=manager)
                for manager in ("a", "a", "b")  # the second changes nothing
            ]
            found.append(send("PATCH", f"{maps}/m{i}", {"data": {"l": "x"}}, "application/merge-patch+json"))
        found.append(send("GET", maps, labelSelector="i in (1, 3)"))
        found.append(send("DELETE", f"{maps}/m2"))
        found.append(send("GET", maps, limit="2"))
        return found

    assert answers(1) == answers(1000)


def _timeless(value):
    """An answer without what differs from one server to the next."""
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in ("uid", "creationTimestamp", "time")}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
