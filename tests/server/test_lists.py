"""Pages of one list show one moment, whatever is written between them."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.server.app import Server
from fairlead.server.exchange import Request

MAPS = "/api/v1/namespaces/default/configmaps"


def send(server, method, path, body=None, **query):
    data = json.dumps(body).encode() if body is not None else b""
    answer = server.respond(Request(method, path, {k: [v] for k, v in query.items()}, {"user-agent": "t"}, data))
    return answer.status, json.loads(answer.body)


def create(server, name):
    assert send(server, "POST", MAPS, {"metadata": {"name": name}})[0] == 201


writes = st.lists(st.tuples(st.sampled_from(["create", "delete"]), st.sampled_from("abcdefgh")), max_size=6)


@settings(max_examples=40, deadline=None)
@given(first=st.sets(st.sampled_from("abcdefgh"), min_size=1), limit=st.integers(1, 4), between=writes)
def test_pages_are_one_snapshot(first, limit, between):
    server = Server()
    for name in first:
        create(server, name)
    found, token, writing = [], "", iter(between)
    while True:
        _, page = send(server, "GET", MAPS, limit=str(limit), **({"continue": token} if token else {}))
        found += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
        for verb, name in [next(writing, None) or ("none", "")]:
            if verb == "create":
                send(server, "POST", MAPS, {"metadata": {"name": name}})
            elif verb == "delete":
                send(server, "DELETE", f"{MAPS}/{name}")
    assert found == sorted(first)


def test_an_expired_page_says_how_to_go_on():
    server = Server()
    for name in "abcd":
        create(server, name)
    _, page = send(server, "GET", MAPS, limit="2")
    send(server, "DELETE", f"{MAPS}/c")
    server.store.compact()
    code, refused = send(server, "GET", MAPS, limit="2", **{"continue": page["metadata"]["continue"]})
    assert (code, refused["reason"]) == (410, "Expired")
    code, rest = send(server, "GET", MAPS, limit="2", **{"continue": refused["metadata"]["continue"]})
    assert (code, [item["metadata"]["name"] for item in rest["items"]]) == (200, ["d"])


def test_remaining_items_are_told_where_nothing_is_selected():
    server = Server()
    for name in "abcd":
        create(server, name)
    assert send(server, "GET", MAPS, limit="1")[1]["metadata"]["remainingItemCount"] == 3
    assert "remainingItemCount" not in send(server, "GET", MAPS, limit="1", labelSelector="!x")[1]["metadata"]
