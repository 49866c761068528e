"""Tests that a fault plan affects only the matching requests, in the same way each time."""

import asyncio
import json

import pytest
from virtual_time import in_virtual_time

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.faults import Fault, Plan, PlanError
from fairlead.testing import virtual

MAPS = "/api/v1/namespaces/default/configmaps"


class FaultyServer:
    def __init__(self, *faults, seed=0):
        self.server = Server(virtual.world())
        self.transport = self.server.transport()
        self.faults = self.server.inject(Plan(faults, seed))

    async def send(self, method, name="", body=None, agent="test", timeout=None, **query):
        path = f"{MAPS}/{name}" if name else MAPS
        encoded_body = json.dumps(body).encode() if body is not None else None
        headers = {"User-Agent": agent}
        response = await self.transport.request(
            HttpRequest(method, path, query=query, headers=headers, body=encoded_body, timeout=timeout)
        )
        return response.status, json.loads(response.body) if response.body[:1] == b"{" else response.body

    async def create(self, name, **remainder):
        return await self.send("POST", body={"metadata": {"name": name}}, **remainder)

    async def put(self, name, value, **remainder):
        return await self.send("PUT", name, {"metadata": {"name": name}, "data": {"v": value}}, **remainder)

    def exists(self, name):
        return self.server.store.table("", "configmaps").get("default", name) is not None

    async def watch(self, **query):
        return await self.transport.stream(HttpRequest("GET", MAPS, query={"watch": "1", **query}))

    def now(self):
        return self.server.world.clock.monotonic()


@in_virtual_time
async def test_a_delay_comes_before_the_request_is_executed():
    faulty_server = FaultyServer(Fault(delay=2.0, verb="create"))
    create_task = asyncio.create_task(faulty_server.create("a"))
    await asyncio.sleep(1.9)
    assert not faulty_server.exists("a")
    assert (await create_task)[0] == 201
    assert faulty_server.now() == 2.0


@in_virtual_time
async def test_a_held_request_is_executed_although_its_client_gave_up():
    faulty_server = FaultyServer(Fault(hold=60.0, verb="create", count=1))
    with pytest.raises(TimeoutError):
        await faulty_server.create("a", timeout=5.0)
    assert faulty_server.now() == 5.0
    assert not faulty_server.exists("a")
    await asyncio.sleep(56)
    assert faulty_server.exists("a")
    assert (await faulty_server.create("b"))[0] == 201
    assert faulty_server.server.faults.counts == {"hold": 1}


@in_virtual_time
async def test_an_in_process_request_times_out():
    faulty_server = FaultyServer(Fault(delay=60.0, verb="create"))
    with pytest.raises(TimeoutError):
        await faulty_server.create("a", timeout=5.0)
    await asyncio.sleep(100)
    assert not faulty_server.exists("a")


@pytest.mark.parametrize(("when", "exists"), [("before", False), ("after", True)])
def test_a_dropped_connection_does_not_show_whether_the_write_happened(when, exists):
    async def main():
        faulty_server = FaultyServer(Fault(drop=when, verb="create"))
        with pytest.raises(ConnectionResetError):
            await faulty_server.create("a")
        assert faulty_server.exists("a") == exists

    virtual.run(main())


@pytest.mark.parametrize(
    ("code", "reason"),
    [(409, "Conflict"), (410, "Expired"), (500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout")],
)
def test_an_injected_status_has_its_reason(code, reason):
    async def main():
        faulty_server = FaultyServer(Fault(status=code, verb="get", kind="ConfigMap"))
        status, body = await faulty_server.send("GET", "a")
        assert (status, body["kind"], body["code"], body["reason"]) == (code, "Status", code, reason)

    virtual.run(main())


@in_virtual_time
async def test_an_injected_429_has_a_retry_after_header():
    faulty_server = FaultyServer(Fault(status=429))
    response = await faulty_server.transport.request(HttpRequest("GET", MAPS))
    assert (response.status, response.headers["Retry-After"]) == (429, "1")


def test_a_write_with_an_injected_504_may_have_happened():
    async def main(seed):
        faulty_server = FaultyServer(Fault(status=504, verb="create"), seed=seed)
        assert (await faulty_server.create("a"))[0] == 504
        return faulty_server.exists("a")

    assert {virtual.run(main(seed)) for seed in range(10)} == {True, False}


@in_virtual_time
async def test_an_injected_response_is_counted_once_in_the_metrics():
    faulty_server = FaultyServer(
        Fault(status=409, verb="update", count=2), Fault(status=429, verb="list"), Fault(status=504, verb="create")
    )
    for _ in range(10):
        await faulty_server.create("a")
    for _ in range(3):
        await faulty_server.put("a", "x")
    await faulty_server.send("GET")
    total = faulty_server.server.metrics.total
    assert faulty_server.exists("a")
    assert (total(verb="PUT", code="409"), total(verb="PUT", code="200")) == (2, 1)
    assert total(verb="LIST", resource="configmaps", code="429") == 1
    assert total(verb="POST", resource="configmaps") == total(verb="POST", resource="configmaps", code="504") == 10


@in_virtual_time
async def test_a_fault_affects_only_matching_requests():
    faulty_server = FaultyServer(
        Fault(status=503, verb=("update", "patch"), user_agent="kubectl/*"),
        Fault(status=409, verb="create", kind="widgets.example.com"),
        Fault(status=500, kind="Secret"),
    )
    assert (await faulty_server.create("a", agent="kubectl/v1"))[0] == 201
    assert (await faulty_server.put("a", "1", agent="other"))[0] == 200
    assert (await faulty_server.put("a", "1", agent="kubectl/v1"))[0] == 503
    assert (await faulty_server.transport.request(HttpRequest("GET", "/api/v1/secrets"))).status == 500
    assert (await faulty_server.transport.request(HttpRequest("GET", "/version"))).status == 200
    assert faulty_server.faults.counts == {"503": 1, "500": 1}


@in_virtual_time
async def test_count_bounds_how_often_a_fault_applies():
    faulty_server = FaultyServer(Fault(status=409, verb="update", count=2))
    await faulty_server.create("a")
    assert [(await faulty_server.put("a", str(i)))[0] for i in range(4)] == [409, 409, 200, 200]


def test_random_faults_follow_from_the_seed():
    async def main(seed):
        faulty_server = FaultyServer(Fault(status=500, probability=0.5), seed=seed)
        return [(await faulty_server.send("GET"))[0] for _ in range(40)]

    first = virtual.run(main(1))
    assert set(first) == {200, 500}
    assert virtual.run(main(1)) == first
    assert virtual.run(main(2)) != first


@in_virtual_time
async def test_a_watch_is_cut_after_the_given_seconds():
    faulty_server = FaultyServer(Fault(cut=(5, 9)))
    stream = await faulty_server.watch(resourceVersion=str(faulty_server.server.store.version))
    await faulty_server.create("a")
    assert json.loads(await stream.read())["type"] == "ADDED"
    with pytest.raises(ConnectionResetError):
        await stream.read()
    assert 5 <= faulty_server.now() <= 9


@in_virtual_time
async def test_cut_breaks_all_open_watches():
    faulty_server = FaultyServer()
    streams = [await faulty_server.watch(resourceVersion=str(faulty_server.server.store.version)) for _ in range(3)]
    reads = [asyncio.create_task(stream.read()) for stream in streams[:2]]
    await asyncio.sleep(1)
    faulty_server.faults.cut()
    for read in (*reads, streams[2].read()):
        with pytest.raises(ConnectionResetError):
            await read


@in_virtual_time
async def test_an_injected_410_of_a_watch_is_an_error_event():
    faulty_server = FaultyServer(Fault(status=410, verb="watch"))
    stream = await faulty_server.watch(resourceVersion=str(faulty_server.server.store.version))
    event = json.loads(await stream.read())
    assert (stream.status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
    assert await stream.read() == b""


@in_virtual_time
async def test_a_lagging_replica_serves_reads_that_may_be_stale():
    faulty_server = FaultyServer(Fault(stale=10, user_agent="test"))
    _, created = await faulty_server.create("a")
    await asyncio.sleep(20)
    _, new = await faulty_server.put("a", "1")
    await faulty_server.create("b")
    old, new = created["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"]
    assert (await faulty_server.send("GET", "a", resourceVersion="0"))[1]["metadata"]["resourceVersion"] == old
    assert (await faulty_server.send("GET", "b", resourceVersion="0"))[0] == 404
    stale_list = (await faulty_server.send("GET", resourceVersion="0"))[1]
    assert (stale_list["metadata"]["resourceVersion"], [item["metadata"]["name"] for item in stale_list["items"]]) == (
        old,
        ["a"],
    )
    fresh = (await faulty_server.send("GET", "a"))[1]["metadata"]["resourceVersion"]
    assert fresh == new, "a read that asks for no version is never stale"
    assert len((await faulty_server.send("GET"))[1]["items"]) == 2
    await asyncio.sleep(10)
    assert (await faulty_server.send("GET", "a", resourceVersion="0"))[1]["metadata"]["resourceVersion"] == new


@in_virtual_time
async def test_a_read_waits_for_a_lagging_replica_up_to_a_timeout():
    faulty_server = FaultyServer(Fault(stale=10))
    _, created = await faulty_server.create("a")
    version = created["metadata"]["resourceVersion"]
    status, body = await faulty_server.send("GET", "a", resourceVersion=version)
    assert (status, body["details"]["causes"][0]["reason"], faulty_server.now()) == (
        504,
        "ResourceVersionTooLarge",
        3.0,
    )
    await asyncio.sleep(5)
    status, body = await faulty_server.send("GET", "a", resourceVersion=version)
    assert (status, faulty_server.now()) == (200, 10.0)


@in_virtual_time
async def test_a_lagging_replica_delays_watch_events():
    faulty_server = FaultyServer(Fault(stale=10, verb="watch"))
    await faulty_server.create("a")
    await asyncio.sleep(20)
    await faulty_server.create("b")
    stream = await faulty_server.watch(resourceVersion="0")
    assert json.loads(await stream.read())["object"]["metadata"]["name"] == "a"
    assert json.loads(await stream.read())["object"]["metadata"]["name"] == "b"
    assert faulty_server.now() == 30
    await stream.close()


@in_virtual_time
async def test_without_a_plan_no_fault_is_injected():
    faulty_server = FaultyServer(Fault(status=500))
    assert (await faulty_server.send("GET"))[0] == 500
    faulty_server.server.inject(None)
    assert (await faulty_server.send("GET"))[0] == 200


PLAN = """
seed: 7
faults:
- {delay: [0.05, 0.2], probability: 0.3}
- {status: 409, verb: [update, patch], kind: ConfigMap, count: 3}
- {drop: after, verb: create, userAgent: greeter*}
- {cut: 30}
- {stale: 5, verb: watch}
"""


def test_a_plan_is_parsed_from_yaml_and_from_json():
    plan = Plan.read(PLAN)
    assert plan.seed == 7
    assert plan.faults[0] == Fault(delay=(0.05, 0.2), probability=0.3)
    assert plan.faults[1] == Fault(status=409, verb=("update", "patch"), kind=("ConfigMap",), count=3)
    assert [fault.effect for fault in plan.faults] == ["delay", "status", "drop", "cut", "stale"]
    assert Plan.read('{"faults": [{"status": 500}]}').faults == (Fault(status=500),)


@pytest.mark.parametrize(
    ("plan_yaml", "message"),
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
def test_an_invalid_plan_raises_an_error_that_names_the_place(plan_yaml, message):
    with pytest.raises(PlanError) as caught:
        Plan.read(plan_yaml)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_faults_break_http_connections():
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


def test_serve_reports_an_invalid_plan_in_one_line(tmp_path):
    from click.testing import CliRunner

    from fairlead.cli.serve import serve

    file = tmp_path / "faults.yaml"
    file.write_text("faults: [{status: 418}]")
    result = CliRunner().invoke(serve, ["--faults", str(file)])
    assert result.exit_code == 2
    assert "faults[0]: status: 418 is not one of" in result.output
