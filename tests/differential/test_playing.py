"""What a real server leaves to chance is not taken for a difference, and nothing else is let pass."""

import json
from types import SimpleNamespace

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server

from . import known, playing
from .playing import Both, Patient

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


class Falling:
    """A server that changes the finalizers in each deletion's answer by the next of these ways, then by none."""

    def __init__(self, *ways):
        self._transport = Server(World(), tokens=["differential"], authorization="RBAC").transport()
        self._ways = list(ways)
        self.deletions = 0

    async def request(self, request):
        reply = await self._transport.request(request)
        body = json.loads(reply.body)
        if request.method != "DELETE" or "finalizers" not in body.get("metadata", {}):
            return reply
        self.deletions += 1
        if self._ways:
            body["metadata"]["finalizers"] = self._ways.pop(0)(body["metadata"]["finalizers"])
        return SimpleNamespace(status=reply.status, body=json.dumps(body).encode(), warnings=reply.warnings)


def turned(finalizers):
    return [*finalizers[1:], finalizers[0]]


@pytest.mark.parametrize("times", [0, 1, 5])
async def test_finalizers_of_a_namespace_in_another_order_are_drawn_again(times):
    real = Falling(*[turned] * times)
    found = known.sorted_out(DELETION, await Both(real).play(DELETION))[0]
    assert not found
    assert real.deletions == times + 1


async def test_an_order_that_never_falls_is_a_difference(monkeypatch):
    monkeypatch.setattr(playing, "TRIES", 4)
    real = Falling(*[turned] * 4)
    found = known.sorted_out(DELETION, await Both(real).play(DELETION))[0]
    assert found[0][:2] == (1, ".body.metadata.finalizers[0]")
    assert real.deletions == 4


async def test_other_finalizers_are_a_difference_at_once():
    real = Falling(lambda finalizers: finalizers[1:])
    found = known.sorted_out(DELETION, await Both(real).play(DELETION))[0]
    assert found[0][:2] == (1, ".body.metadata.finalizers.length")
    assert real.deletions == 1


async def test_histories_on_one_server_never_meet(monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    real = Falling()
    for _ in range(2):
        assert not known.sorted_out(DELETION, await Both(real).play(DELETION))[0]


class Lagging:
    """A server whose memory is as new as the newest version that it was asked for."""

    def __init__(self):
        self.memory = 3

    async def request(self, request):
        self.memory = max(self.memory, int((request.query or {}).get("resourceVersion", 0)))
        return SimpleNamespace(status=200, body=b'{"metadata": {"resourceVersion": "7"}}', memory=self.memory)

    async def stream(self, request):
        return SimpleNamespace(memory=self.memory)


@pytest.mark.parametrize("version", [None, "0", "5"])
async def test_a_watch_begins_when_the_memory_has_what_was_written(version):
    query = {"sendInitialEvents": "true"} | ({"resourceVersion": version} if version else {})
    stream = await Patient(Lagging()).stream(HttpRequest("GET", "/api/v1/configmaps", query=query))
    assert stream.memory == 7


@pytest.mark.parametrize("version", ["0", "5"])
async def test_a_read_from_memory_waits_for_what_was_written(version):
    reply = await Patient(Lagging()).request(
        HttpRequest("GET", "/api/v1/configmaps", query={"resourceVersion": version})
    )
    assert reply.memory == 7


@pytest.mark.parametrize(
    ("do", "path", "versions", "again"),
    [
        ("PUT", "/apis/x/v1/namespaces/n/widgets/w/scale", ("<rv1>", "<rv2>"), True),
        ("PATCH", "/apis/x/v1/namespaces/n/widgets/w/scale", ("<rv1>", "<rv1>"), False),
        ("PUT", "/apis/x/v1/namespaces/n/widgets/w", ("<rv1>", "<rv2>"), False),
        ("GET", "/apis/x/v1/namespaces/n/widgets/w/scale", ("<rv1>", "<rv2>"), False),
    ],
)
def test_a_scale_that_is_written_in_another_second_is_drawn_again(do, path, versions, again):
    real, ours = ({"code": 200, "body": {"metadata": {"resourceVersion": version}}} for version in versions)
    assert playing.by_chance({"do": do, "path": path}, real, ours) is again
