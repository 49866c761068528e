"""Tests that the index of bindings returns the same bindings as a scan, after any writes."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.authentication.users import User
from fairlead.server.authorization.bindings import Bindings
from fairlead.server.storage.store import Store

USERS = [User("a", ("g",)), User("b"), User("system:serviceaccount:n:x", ("g", "h")), User("g")]
SUBJECTS = st.sampled_from(
    [
        {"kind": "User", "name": "a"},
        {"kind": "User", "name": "g"},
        {"kind": "User", "name": "system:serviceaccount:n:x"},
        {"kind": "Group", "name": "g"},
        {"kind": "Group", "name": "h"},
        {"kind": "ServiceAccount", "name": "x"},
        {"kind": "ServiceAccount", "name": "x", "namespace": "n"},
    ]
)
WRITES = st.lists(
    st.tuples(
        st.sampled_from(["n", "m"]),
        st.sampled_from(["1", "2", "3"]),
        st.none() | st.lists(SUBJECTS, max_size=3),
        st.booleans(),
    ),
    max_size=30,
)


def applies(user, subject, namespace):
    if subject["kind"] == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject['name']}"
    return subject["name"] in user.groups if subject["kind"] == "Group" else subject["name"] == user.name


@given(WRITES, st.integers(1, 5))
def test_the_index_returns_the_same_bindings_as_a_scan(writes, history):
    store = Store(history=history)  # so short that the index must start over at times
    table = store.table("rbac.authorization.k8s.io", "rolebindings")
    index = Bindings(table)
    for namespace, name, subjects, look in writes:
        live = table.get(namespace, name)
        if subjects is not None:
            store.put(table, {"metadata": {"namespace": namespace, "name": name}, "subjects": subjects})
        elif live is not None:
            store.delete(table, live)
        for user in USERS if look else ():
            indexed_names = [binding["metadata"]["name"] for binding in index.find(user, namespace)]
            every = [stored.object for _, stored in table.scan(namespace)]
            assert indexed_names == [
                binding["metadata"]["name"]
                for binding in every
                if any(applies(user, s, namespace) for s in binding["subjects"])
            ]
