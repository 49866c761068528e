"""A fault plan does what it says to whom it says, the same each time, and to nobody else."""

import asyncio
import json

import pytest
from virtual_time import in_virtual_time

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.faults import Fault, Plan, PlanError
from fairlead.testing import virtual

MAPS = "/api/v1/namespaces/default/configmaps"


class Bed:
    def __init__(self, *faults, seed=0):
        self.server = Server(virtual.world())
        self.transport = self.server.transport()
        self.faults = self.server.inject(Plan(faults, seed))

    async def send(self, method, name="", body=None, agent="test", timeout=None, **query):
        path = f"{MAPS}/{name}" if name else MAPS
        data = json.dumps(body).encode() if body is not None else None
        headers = {"User-Agent": agent}
        answer = await self.transport.request(
            HttpRequest(method, path, query=query, headers=headers, body=data, timeout=timeout)
        )
        return answer.status, json.loads(answer.body) if answer.body[:1] == b"{" else answer.body

    async def create(self, name, **rest):
        return await self.send("POST", body={"metadata": {"name": name}}, **rest)

    async def put(self, name, value, **rest):
        return await self.send("PUT", name, {"metadata": {"name": name}, "data": {"v": value}}, **rest)

    def there(self, name):
        return self.server.store.table("", "configmaps").get("default", name) is not None

    async def watch(self, **query):
        return await self.transport.stream(HttpRequest("GET", MAPS, query={"watch": "1", **query}))

    def now(self):
        return self.server.world.clock.monotonic()


@in_virtual_time
async def test_a_delay_comes_before_the_request_is_looked_at():
    bed = Bed(Fault(delay=2.0, verb="create"))
    sent = asyncio.create_task(bed.create("a"))
    await asyncio.sleep(1.9)
    assert not bed.there("a")
    assert (await sent)[0] == 201
    assert bed.now() == 2.0


@in_virtual_time
async def test_what_is_held_is_carried_out_later_though_its_sender_gave_up():
    bed = Bed(Fault(hold=60.0, verb="create", count=1))
    with pytest.raises(TimeoutError):
        await bed.create("a", timeout=5.0)
    assert bed.now() == 5.0
    assert not bed.there("a")
    await asyncio.sleep(56)
    assert bed.there("a")
    assert (await bed.create("b"))[0] == 201
    assert bed.server.faults.counts == {"hold": 1}


@in_virtual_time
async def test_a_request_in_this_process_ends_at_its_deadline_too():
    bed = Bed(Fault(delay=60.0, verb="create"))
    with pytest.raises(TimeoutError):
        await bed.create("a", timeout=5.0)
    await asyncio.sleep(100)
    assert not bed.there("a")


@pytest.mark.parametrize(("when", "there"), [("before", False), ("after", True)])
def test_a_drop_looks_the_same_before_and_after_the_commit(when, there):
    async def main():
        bed = Bed(Fault(drop=when, verb="create"))
        with pytest.raises(ConnectionResetError):
            await bed.create("a")
        assert bed.there("a") == there

    virtual.run(main())


@pytest.mark.parametrize(
    ("code", "reason"),
    [(409, "Conflict"), (410, "Expired"), (500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout")],
)
def test_a_refusal_is_a_status_with_its_reason(code, reason):
    async def main():
        bed = Bed(Fault(status=code, verb="get", kind="ConfigMap"))
        status, body = await bed.send("GET", "a")
        assert (status, body["kind"], body["code"], body["reason"]) == (code, "Status", code, reason)

    virtual.run(main())


@in_virtual_time
async def test_too_many_requests_say_when_to_come_back():
    bed = Bed(Fault(status=429))
    answer = await bed.transport.request(HttpRequest("GET", MAPS))
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1")


def test_a_write_that_timed_out_may_have_happened():
    async def main(seed):
        bed = Bed(Fault(status=504, verb="create"), seed=seed)
        assert (await bed.create("a"))[0] == 504
        return bed.there("a")

    assert {virtual.run(main(seed)) for seed in range(10)} == {True, False}


@in_virtual_time
async def test_what_the_plan_answers_is_counted_once_as_any_answer():
    bed = Bed(
        Fault(status=409, verb="update", count=2), Fault(status=429, verb="list"), Fault(status=504, verb="create")
    )
    for _ in range(10):
        await bed.create("a")
    for _ in range(3):
        await bed.put("a", "x")
    await bed.send("GET")
    total = bed.server.metrics.total
    assert bed.there("a")
    assert (total(verb="PUT", code="409"), total(verb="PUT", code="200")) == (2, 1)
    assert total(verb="LIST", resource="configmaps", code="429") == 1
    assert total(verb="POST", resource="configmaps") == total(verb="POST", resource="configmaps", code="504") == 10


@in_virtual_time
async def test_a_fault_strikes_only_whom_it_names():
    bed = Bed(
        Fault(status=503, verb=("update", "patch"), user_agent="kubectl/*"),
        Fault(status=409, verb="create", kind="widgets.example.com"),
        Fault(status=500, kind="Secret"),
    )
    assert (await bed.create("a", agent="kubectl/v1"))[0] == 201
    assert (await bed.put("a", "1", agent="other"))[0] == 200
    assert (await bed.put("a", "1", agent="kubectl/v1"))[0] == 503
    assert (await bed.transport.request(HttpRequest("GET", "/api/v1/secrets"))).status == 500
    assert (await bed.transport.request(HttpRequest("GET", "/version"))).status == 200
    assert bed.faults.counts == {"503": 1, "500": 1}


@in_virtual_time
async def test_a_count_bounds_how_often_it_strikes():
    bed = Bed(Fault(status=409, verb="update", count=2))
    await bed.create("a")
    assert [(await bed.put("a", str(i)))[0] for i in range(4)] == [409, 409, 200, 200]


def test_chance_follows_from_the_seed():
    async def main(seed):
        bed = Bed(Fault(status=500, probability=0.5), seed=seed)
        return [(await bed.send("GET"))[0] for _ in range(40)]

    first = virtual.run(main(1))
    assert set(first) == {200, 500}
    assert virtual.run(main(1)) == first
    assert virtual.run(main(2)) != first


@in_virtual_time
async def test_a_watch_is_cut_after_its_time():
    bed = Bed(Fault(cut=(5, 9)))
    stream = await bed.watch(resourceVersion=str(bed.server.store.version))
    await bed.create("a")
    assert json.loads(await stream.read())["type"] == "ADDED"
    with pytest.raises(ConnectionResetError):
        await stream.read()
    assert 5 <= bed.now() <= 9


@in_virtual_time
async def test_every_watch_can_be_cut_at_once():
    bed = Bed()
    streams = [await bed.watch(resourceVersion=str(bed.server.store.version)) for _ in range(3)]
    reads = [asyncio.create_task(stream.read()) for stream in streams[:2]]
    await asyncio.sleep(1)
    bed.faults.cut()
    for read in (*reads, streams[2].read()):
        with pytest.raises(ConnectionResetError):
            await read


@in_virtual_time
async def test_an_expired_watch_is_told_in_its_stream():
    bed = Bed(Fault(status=410, verb="watch"))
    stream = await bed.watch(resourceVersion=str(bed.server.store.version))
    event = json.loads(await stream.read())
    assert (stream.status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
    assert await stream.read() == b""


@in_virtual_time
async def test_a_lagging_replica_answers_reads_that_may_be_stale():
    bed = Bed(Fault(stale=10, user_agent="test"))
    _, made = await bed.create("a")
    await asyncio.sleep(20)
    _, new = await bed.put("a", "1")
    await bed.create("b")
    old, new = made["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"]
    assert (await bed.send("GET", "a", resourceVersion="0"))[1]["metadata"]["resourceVersion"] == old
    assert (await bed.send("GET", "b", resourceVersion="0"))[0] == 404
    stale = (await bed.send("GET", resourceVersion="0"))[1]
    assert (stale["metadata"]["resourceVersion"], [item["metadata"]["name"] for item in stale["items"]]) == (old, ["a"])
    fresh = (await bed.send("GET", "a"))[1]["metadata"]["resourceVersion"]
    assert fresh == new, "a read that asks for no version is never stale"
    assert len((await bed.send("GET"))[1]["items"]) == 2
    await asyncio.sleep(10)
    assert (await bed.send("GET", "a", resourceVersion="0"))[1]["metadata"]["resourceVersion"] == new


@in_virtual_time
async def test_a_lagging_replica_is_waited_for_and_then_given_up():
    bed = Bed(Fault(stale=10))
    _, made = await bed.create("a")
    version = made["metadata"]["resourceVersion"]
    status, body = await bed.send("GET", "a", resourceVersion=version)
    assert (status, body["details"]["causes"][0]["reason"], bed.now()) == (504, "ResourceVersionTooLarge", 3.0)
    await asyncio.sleep(5)
    status, body = await bed.send("GET", "a", resourceVersion=version)
    assert (status, bed.now()) == (200, 10.0)


@in_virtual_time
async def test_a_lagging_replica_tells_watches_late():
    bed = Bed(Fault(stale=10, verb="watch"))
    await bed.create("a")
    await asyncio.sleep(20)
    await bed.create("b")
    stream = await bed.watch(resourceVersion="0")
    assert json.loads(await stream.read())["object"]["metadata"]["name"] == "a"
    assert json.loads(await stream.read())["object"]["metadata"]["name"] == "b"
    assert bed.now() == 30
    await stream.close()


@in_virtual_time
async def test_without_a_plan_there_is_no_trouble():
    bed = Bed(Fault(status=500))
    assert (await bed.send("GET"))[0] == 500
    bed.server.inject(None)
    assert (await bed.send("GET"))[0] == 200


PLAN = """
seed: 7
faults:
- {delay: [0.05, 0.2], probability: 0.3}
- {status: 409, verb: [update, patch], kind: ConfigMap, count: 3}
- {drop: after, verb: create, userAgent: greeter*}
- {cut: 30}
- {stale: 5, verb: watch}
"""


def test_a_plan_is_read_from_yaml_and_from_json():
    plan = Plan.read(PLAN)
    assert plan.seed == 7
    assert plan.faults[0] == Fault(delay=(0.05, 0.2), probability=0.3)
    assert plan.faults[1] == Fault(status=409, verb=("update", "patch"), kind=("ConfigMap",), count=3)
    assert [fault.effect for fault in plan.faults] == ["delay", "status", "drop", "cut", "stale"]
    assert Plan.read('{"faults": [{"status": 500}]}').faults == (Fault(status=500),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a plan is a map"),
        ("[", "not YAML"),
        ("[" * 5000, "not YAML"),
        ("faults: {}", "a plan is a map"),
        ("{faults: [], sede: 1}", "not sede"),
        ("{faults: [], seed: x}", "seed: 'x' is not an integer"),
        ("faults: [x]", "faults[0]: 'x' is not a map"),
        ("faults: [{status: 418}]", "faults[0]: status: 418 is not one of 409, 410, 429, 500, 503, 504"),
        ("faults: [{status: 409, drop: after}]", "has drop and status"),
        ("faults: [{verb: get}]", "has none"),
        ("faults: [{status: 409}, {delay: -1}]", "faults[1]: delay: -1 is not a number of seconds"),
        ("faults: [{delay: [2, 1]}]", "delay: [2, 1] is not a number of seconds or [least, most]"),
        ("faults: [{delay: .nan}]", "delay: nan is not a number"),
        ("faults: [{stale: [1, 2]}]", "stale: [1, 2] is not a number of seconds"),
        ("faults: [{drop: never}]", "drop: 'never' is not before or after"),
        ("faults: [{status: 409, verb: apply}]", "verb: 'apply' is not one of get"),
        ("faults: [{status: 409, verb: 3}]", "faults[0]"),
        ("faults: [{status: 409, kind: [3]}]", "kind: [3] does not name a kind"),
        ("faults: [{status: 409, userAgent: 3}]", "userAgent: 3 is not a text"),
        ("faults: [{status: 409, probability: 2}]", "probability: 2 is not between 0 and 1"),
        ("faults: [{status: 409, count: 1.5}]", "count: 1.5 is not a positive integer"),
        ("faults: [{status: 409, count: 0}]", "count: 0 is not a positive integer"),
        ("faults: [{cut: 1, verb: get}]", "faults[0]: verb: cut does not apply to get, only to watch"),
        (
            "faults: [{stale: 1, verb: [create, patch]}]",
            "stale does not apply to create, patch, only to get, list, watch",
        ),
        ("faults: [{status: 409, agent: x}]", "not agent"),
    ],
)
def test_a_bad_plan_is_one_line_that_says_where_and_why(text, told):
    with pytest.raises(PlanError) as caught:
        Plan.read(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_faults_break_real_connections_too():
    from fairlead.api.world import World
    from fairlead.client.access import Cluster
    from fairlead.client.credentials import StaticCredentials
    from fairlead.client.http import HttpTransport

    server = Server(World(), tokens=["t"])
    listening = await server.listen(tls=False)
    transport = HttpTransport(Cluster(listening.url, None), StaticCredentials.token("t"))
    try:
        server.inject(Plan([Fault(drop="after", verb="create"), Fault(cut=0.05), Fault(status=503, verb="get")]))
        body = b'{"metadata":{"name":"a"}}'
        with pytest.raises(ConnectionError):
            await transport.request(HttpRequest("POST", MAPS, headers={"Content-Type": "application/json"}, body=body))
        assert server.store.table("", "configmaps").get("default", "a")
        assert (await transport.request(HttpRequest("GET", f"{MAPS}/a"))).status == 503
        stream = await transport.stream(
            HttpRequest("GET", MAPS, query={"watch": "1", "resourceVersion": str(server.store.version)})
        )
        with pytest.raises(ConnectionError):
            await stream.read()
        await stream.close()
    finally:
        await transport.close()
        await listening.close()


def test_the_command_tells_a_bad_plan_in_one_line(tmp_path):
    from click.testing import CliRunner

    from fairlead.cli.serve import serve

    file = tmp_path / "faults.yaml"
    file.write_text("faults: [{status: 418}]")
    result = CliRunner().invoke(serve, ["--faults", str(file)])
    assert result.exit_code == 2
    assert "faults[0]: status: 418 is not one of" in result.output
