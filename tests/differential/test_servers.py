"""Tests that random choices of a real server are not reported as differences, and all others are."""

import json
from types import SimpleNamespace

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server

from . import servers
from .documented_differences import find_undocumented
from .servers import ServerPair, WaitingTransport

NAMESPACE = "/api/v1/namespaces/w-{id}"
DELETION = {
    "name": "deletion",
    "family": "cluster",
    "steps": [
        {
            "do": "POST",
            "path": "/api/v1/namespaces",
            "body": {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "w-{id}", "finalizers": ["x.y/f", "x.y/g"]},
            },
        },
        {"do": "DELETE", "path": NAMESPACE, "query": {"propagationPolicy": "Foreground"}},
        {"do": "GET", "path": NAMESPACE},
    ],
}


class ReorderingServer:
    """A server that changes the order of the finalizers in its responses to DELETE."""

    def __init__(self, *changes):
        self._transport = Server(World(), tokens=["differential"], authorization="RBAC").transport()
        self._changes = list(changes)
        self.deletions = 0

    async def request(self, request):
        reply = await self._transport.request(request)
        body = json.loads(reply.body)
        if request.method != "DELETE" or "finalizers" not in body.get("metadata", {}):
            return reply
        self.deletions += 1
        if self._changes:
            body["metadata"]["finalizers"] = self._changes.pop(0)(body["metadata"]["finalizers"])
        return SimpleNamespace(status=reply.status, body=json.dumps(body).encode(), warnings=reply.warnings)


def rotate(finalizers):
    return [*finalizers[1:], finalizers[0]]


@pytest.mark.parametrize("times", [0, 1, 5])
async def test_history_is_repeated_while_the_order_of_finalizers_differs(times):
    real = ReorderingServer(*[rotate] * times)
    differences = find_undocumented(DELETION, await ServerPair(real).play(DELETION))[0]
    assert not differences
    assert real.deletions == times + 1


async def test_order_that_never_agrees_is_a_difference(monkeypatch):
    monkeypatch.setattr(servers, "MAX_PLAYS", 4)
    real = ReorderingServer(*[rotate] * 4)
    differences = find_undocumented(DELETION, await ServerPair(real).play(DELETION))[0]
    assert differences[0][:2] == (1, ".body.metadata.finalizers[0]")
    assert real.deletions == 4


async def test_other_finalizers_are_a_difference_without_repetition():
    real = ReorderingServer(lambda finalizers: finalizers[1:])
    differences = find_undocumented(DELETION, await ServerPair(real).play(DELETION))[0]
    assert differences[0][:2] == (1, ".body.metadata.finalizers.length")
    assert real.deletions == 1


async def test_histories_on_one_server_use_different_namespaces(monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    real = ReorderingServer()
    for _ in range(2):
        assert not find_undocumented(DELETION, await ServerPair(real).play(DELETION))[0]


class LaggingServer:
    """A server whose watch cache has only reached the newest version that a client requested."""

    def __init__(self):
        self.cached = 3

    async def request(self, request):
        self.cached = max(self.cached, int((request.query or {}).get("resourceVersion", 0)))
        return SimpleNamespace(status=200, body=b'{"metadata": {"resourceVersion": "7"}}', cached=self.cached)

    async def stream(self, request):
        return SimpleNamespace(cached=self.cached)


@pytest.mark.parametrize("version", [None, "0", "5"])
async def test_watch_starts_after_the_cache_is_up_to_date(version):
    query = {"sendInitialEvents": "true"} | ({"resourceVersion": version} if version else {})
    stream = await WaitingTransport(LaggingServer()).stream(HttpRequest("GET", "/api/v1/configmaps", query=query))
    assert stream.cached == 7


@pytest.mark.parametrize("version", ["0", "5"])
async def test_read_from_the_cache_waits_until_it_is_up_to_date(version):
    reply = await WaitingTransport(LaggingServer()).request(
        HttpRequest("GET", "/api/v1/configmaps", query={"resourceVersion": version})
    )
    assert reply.cached == 7


@pytest.mark.parametrize(
    ("do", "path", "versions", "is_random"),
    [
        ("PUT", "/apis/x/v1/namespaces/n/widgets/w/scale", ("<rv1>", "<rv2>"), True),
        ("PATCH", "/apis/x/v1/namespaces/n/widgets/w/scale", ("<rv1>", "<rv1>"), False),
        ("PUT", "/apis/x/v1/namespaces/n/widgets/w", ("<rv1>", "<rv2>"), False),
        ("GET", "/apis/x/v1/namespaces/n/widgets/w/scale", ("<rv1>", "<rv2>"), False),
    ],
)
def test_scale_that_differs_in_its_version_differs_at_random(do, path, versions, is_random):
    real, embedded = ({"code": 200, "body": {"metadata": {"resourceVersion": version}}} for version in versions)
    assert servers.differs_at_random({"do": do, "path": path}, real, embedded) is is_random
