"""Tests of the server of the live page: JSON, HTML, security headers and rejected hosts."""

import asyncio
import contextlib

import aiohttp
import msgspec
import pytest

import fairlead as fl
from fairlead.client.client import Client
from fairlead.report.live import shapes
from fairlead.report.live.server import LivePage, parse_address, serve_page
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server

Thing = fl.kind("test.example.com/v1", "Thing")


def make_operator():
    op = fl.Operator("tester")

    @op.reconcile(Thing, owns=[fl.ConfigMap, fl.Secret])
    async def reconcile(obj, ctx):
        if obj.spec.get("fail"):
            raise ValueError("the password is hunter2")
        if obj.spec.get("block"):
            await asyncio.Event().wait()
        await ctx.apply(fl.ConfigMap(obj.name, data={"text": obj.spec.get("text", "Hello")}))
        await ctx.apply(fl.Secret(f"{obj.name}-token", stringData={"token": "hunter2"}))
        if after := obj.spec.get("after"):
            raise fl.RequeueAfter(after)

    return op


class PageUnderTest:
    """An operator with a page on the embedded server, and an HTTP client of the page."""

    def __init__(self, client, running, page, session):
        self.client, self.running, self.page, self.session = client, running, page, session

    async def create(self, name, namespace="default", **spec):
        await self.client.create(Thing(name, namespace, spec=spec))
        await self._wait_for_pass(name, namespace)

    async def _wait_for_pass(self, name, namespace):
        async with asyncio.timeout(10):
            while not any((obj.object.name, obj.object.namespace) == (name, namespace)
                          for obj in self.page.memory.objects()):  # fmt: skip
                if any(running_pass.woken.object.name == name for running_pass in self.page.memory.running_passes()):
                    return
                await asyncio.sleep(0.01)

    async def get(self, path, status=200, **headers):
        async with self.session.get(path, headers=headers) as response:
            assert response.status == status, await response.text()
            return response, await response.text()

    async def json(self, path, type=None, status=200):  # noqa: A002
        _, body = await self.get(path, status)
        return msgspec.json.decode(body, type=type) if type else msgspec.json.decode(body)


@contextlib.asynccontextmanager
async def page_under_test(allowed_hosts=()):
    world = fl.World()
    server = Server(world)
    client = Client(server.transport(), world)
    await install_missing(client, [Thing])
    pages = []
    subscribe = serve_page("0", allowed_hosts)
    async with make_operator().running(
        server.transport(), world, subscribers=[lambda running: pages.append(subscribe(running))]
    ) as running:
        (page,) = pages
        async with aiohttp.ClientSession(page.url) as session:
            await running.wait_until_idle()
            yield PageUnderTest(client, running, page, session)
            for task in running._passes:
                task.cancel()


async def test_overview_has_controllers_queue_and_passes_in_flight():
    async with page_under_test() as page:
        await page.create("done")
        await page.create("late", after=60)
        await page.create("bad", fail=True)
        await page.create("stuck", block=True)
        for _ in range(500):
            overview = await page.json("/debug", shapes.Overview)
            (controller,) = overview.controllers
            if controller.queue == {"ready": 0, "processing": 1, "delayed": 1, "backoff": 1, "held": 0}:
                break
            await asyncio.sleep(0.01)
        assert controller.queue == {"ready": 0, "processing": 1, "delayed": 1, "backoff": 1, "held": 0}
        assert (controller.name, controller.kind, controller.failing) == ("thing", "Thing", 1)
        assert (overview.operator, overview.is_leading, overview.problems) == ("tester", True, {})
        (running,) = overview.running
        assert (running.object.name, running.is_running, running.causes) == ("stuck", True, ["Thing stuck added"])
        assert overview.memory.objects == 3
        _, page_html = await page.get("/")
        assert "Passes in flight: 1" in page_html
        for state, name in (("processing", "stuck"), ("delayed", "late"), ("failing", "bad"), ("idle", "done")):
            objects_in_state = await page.json(f"/debug/objects?state={state}", shapes.ObjectList)
            names = [item.object.name for item in objects_in_state.items]
            assert names == ([] if name == "stuck" else [name])  # A first pass that runs is not listed yet.


async def test_object_has_causes_reads_writes_with_fields_and_the_next_look():
    async with page_under_test() as page:
        await page.create("a", after=60)
        await page.running.wait_until_idle()
        details = await page.json("/debug/object?kind=thing&name=a", shapes.ObjectDetails)
        assert (details.summary.controller, details.summary.state, details.is_cached) == ("thing", "delayed", True)
        assert 0 < details.summary.next_look <= 60
        first = details.history[-1]
        assert first.causes == ["Thing a added"]
        assert (first.outcome, first.reason, first.next_look) == ("requeue_after", "Reconciled", 60.0)
        assert [step.point for step in first.steps] == ["read", "written", "written", "written"]
        child = first.steps[1]
        assert (child.verb, child.object.kind, child.outcome) == ("apply", "ConfigMap", "created")
        assert shapes.Change(path="data", new={"text": "Hello"}) in child.changes
        assert child.text == "created ConfigMap a"


async def test_values_of_secrets_and_texts_of_exceptions_are_not_shown():
    async with page_under_test() as page:
        await page.create("a")
        await page.create("bad", fail=True)
        await page.running.wait_until_seen(await page.client.get(fl.Secret, "a-token", "default"))
        for name in ("a", "bad"):
            for path in ("/object", "/debug/object"):
                _, page_html = await page.get(f"{path}?kind=thing&name={name}")
                assert "hunter2" not in page_html
                assert "aHVudGVyMg" not in page_html  # in base64
                assert ("ValueError" if name == "bad" else "redacted") in page_html


async def test_paused_object_and_ambiguous_or_unknown_names_are_explained():
    async with page_under_test() as page:
        await page.client.create(fl.Namespace("other"))
        await page.create("same")
        await page.create("same", "other")
        paused = Thing("paused", "default", annotations={"fairlead.dev/paused": "true"}, spec={})
        await page.running.wait_until_seen(await page.client.create(paused))
        details = await page.json("/debug/object?kind=Thing&name=paused", shapes.ObjectDetails)
        assert any(note.startswith("Paused.") for note in details.notes)
        answer = await page.json("/debug/object?kind=Thing&name=same", status=404)
        assert answer["error"] == ("2 objects are called Thing same, in default, other: choose one by its namespace")
        assert (await page.json("/debug/object?kind=things.test.example.com&name=same&namespace=other"))["summary"]
        answer = await page.json("/debug/object?kind=Pod&name=same", status=404)
        assert answer["error"] == "tester does not reconcile Pod: it reconciles Thing"
        _, page_html = await page.get("/object?kind=thing&name=%3Cscript%3E", status=404)
        assert "knows no Thing &lt;script&gt;" in page_html


async def test_search_and_pages():
    async with page_under_test() as page:
        for number in range(12):
            await page.create(f"web-{number}")
        await page.running.wait_until_idle()
        matching_objects = await page.json("/debug/objects?search=THING+web-1&limit=2&offset=1", shapes.ObjectList)
        assert (
            matching_objects.total,
            matching_objects.offset,
            matching_objects.limit,
            len(matching_objects.items),
        ) == (3, 1, 2, 2)  # web-1, web-10, web-11
        assert matching_objects.items[0].last_pass.steps == []
        assert (await page.json("/debug/objects?search=nothing"))["total"] == 0
        assert (await page.json("/debug/objects?controller=other"))["total"] == 0
        assert (await page.json("/debug/objects?limit=100000"))["limit"] == 200
        await page.get("/debug/objects?offset=-1", status=400)
        await page.get("/debug/object?kind=Thing", status=400)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8095", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "10.0.0.1"],
)
async def test_requests_for_other_hosts_are_rejected(host):
    """A web site whose name resolves to 127.0.0.1 could read the page otherwise."""
    async with page_under_test() as page:
        for path in ("/", "/object", "/debug", "/debug/objects", "/debug/object", "/assets/page.js", "/nothing"):
            response, body = await page.get(path, 403, Host=host)
            assert "tester" not in body
            assert "Access-Control-Allow-Origin" not in response.headers


async def test_loopback_names_and_allowed_hosts_are_served():
    async with page_under_test(["operator.example.com"]) as page:
        for host in ("localhost:9000", "127.0.0.1", "[::1]:8095", "operator.example.com", "LOCALHOST"):
            await page.get("/debug", Host=host)


async def test_only_get_and_head_are_answered_and_every_answer_has_the_security_headers():
    async with page_under_test() as page:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            async with page.session.request(method, "/debug") as response:
                assert response.status == 405
        async with page.session.head("/") as response:
            assert response.status == 200
        for path, status in (("/", 200), ("/debug", 200), ("/assets/page.css", 200), ("/nothing", 404)):
            response, _ = await page.get(path, status)
            assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            assert "unsafe" not in response.headers["Content-Security-Policy"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_address_in_use_is_reported_with_the_remedy():
    async with page_under_test() as page:
        with pytest.raises(fl.errors.UserError, match=r"cannot serve the page .*: use another port, --ui PORT"):
            await LivePage(page.running, "127.0.0.1", page.page.port).__aenter__()


@pytest.mark.parametrize("address", ["0.0.0.0:8095", "[::]:8095", "192.168.1.1:80", "operator.example.com:80"])
def test_address_beyond_loopback_needs_an_allowed_host(address):
    with pytest.raises(ValueError, match="neither TLS nor a password: use a loopback address"):
        parse_address(address)
    assert parse_address(address, ["operator.example.com"])[1] in (80, 8095)


@pytest.mark.parametrize("address", ["8095", "127.0.0.1:8095", "localhost:8095", "[::1]:8095", ":8095"])
def test_loopback_addresses_need_nothing_else(address):
    assert parse_address(address)[1] == 8095


async def test_without_a_page_no_record_of_reads_is_built():
    server = Server(fl.World())
    client = Client(server.transport(), fl.World())
    await install_missing(client, [Thing])
    async with make_operator().running(server.transport(), fl.World()) as running:
        assert not running.history.wants("read")
