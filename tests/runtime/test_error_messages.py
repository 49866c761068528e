"""The text of unexpected exceptions, and the values of Secrets, stay out of conditions and Events, on both servers."""

import inspect
import itertools
import json

import pytest

import fairlead as fl
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing
from fairlead.runtime.pass_results import from_error

Thing = fl.kind("messages.example.com/v1", "Thing")
PASSWORD = "hunter2-and-more"


@pytest.fixture
async def client(api):
    client = Client(api.transport(), fl.World(), user_agent="somebody-else")
    await install_missing(client, [Thing])
    return client


class RecordingTransport:
    """A transport that records the method and path of each request."""

    def __init__(self, transport):
        self.transport, self.requests = transport, []

    async def request(self, request):
        self.requests.append((request.method, request.path))
        return await self.transport.request(request)

    def __getattr__(self, name):
        return getattr(self.transport, name)


async def run(api, client, reconcile, tries=3):
    """Run the handler until it failed `tries` times. Return the object, the Events, and the requests."""
    op = fl.Operator("tester")
    op.reconcile(Thing, owns=[fl.Secret])(reconcile)
    await client.create(Thing("thing", api.namespace, spec={}))
    transport = RecordingTransport(api.transport())
    async with op.running(transport, namespaces=[api.namespace], tries=tries) as running:
        await running.wait_until_idle()
    events = (await client.list(fl.Event, api.namespace)).items
    return await client.get(Thing, "thing", api.namespace), events, transport.requests


def connect_to_database():
    raise ConnectionAbortedError(f"cannot connect to postgres://admin:{PASSWORD}@db")


async def test_text_of_an_exception_is_in_the_log_only(api, client, caplog):
    async def reconcile(obj, ctx):
        try:
            connect_to_database()
        except ConnectionError as error:
            raise RuntimeError(f"no database: {error}") from error

    thing, events, _ = await run(api, client, reconcile)
    lines, first = inspect.getsourcelines(reconcile)
    line = first + next(number for number, text in enumerate(lines) if "raise RuntimeError" in text)
    expected = f"RuntimeError at tests/runtime/test_error_messages.py:{line}: the operator's log has the details"
    ready = thing.condition("Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "RuntimeError", expected)
    assert [(event["reason"], event["message"]) for event in events] == [("RuntimeError", expected)]
    assert PASSWORD not in json.dumps([thing, *events])
    assert PASSWORD in caplog.text


async def test_text_that_differs_from_try_to_try_is_written_once(api, client):
    numbers = itertools.count(1)

    async def reconcile(obj, ctx):
        raise RuntimeError(f"request {next(numbers)} failed")

    _, events, requests = await run(api, client, reconcile, tries=5)
    assert next(numbers) == 6
    assert len([path for method, path in requests if method == "PATCH" and path.endswith("/status")]) == 1
    assert len(events) == 1


@pytest.mark.parametrize("outcome", [fl.Terminal("Broken", "no pump"), fl.Wait("Broken", "no pump")])
async def test_messages_of_outcomes_are_kept(api, client, outcome):
    async def reconcile(obj, ctx):
        raise outcome

    thing, _, _ = await run(api, client, reconcile)
    assert thing.condition("Ready")["message"] == "no pump"


async def test_rejected_secret_is_reported_without_its_values(api, client, caplog):
    """The server quotes a number where it expects text."""

    async def reconcile(obj, ctx):
        await ctx.apply(fl.Secret("credentials", data={"password": 4711471147}))

    thing, events, _ = await run(api, client, reconcile)
    assert "<redacted>" in thing.condition("Ready")["message"]
    assert "4711471147" not in json.dumps([thing, *events]) + caplog.text


def test_place_is_in_the_code_of_the_user_and_not_in_a_library():
    def handler():
        json.loads("{" + PASSWORD)

    with pytest.raises(ValueError, match="Expecting") as caught:
        handler()
    message = from_error(caught.value).message
    assert message.startswith("JSONDecodeError at tests/runtime/test_error_messages.py:")
    assert PASSWORD not in message


def test_exception_without_a_traceback_is_reported_by_its_type():
    assert from_error(RuntimeError(PASSWORD)).message == "RuntimeError: the operator's log has the details"


def test_messages_of_fairlead_are_kept():
    for error in (fl.errors.HandlerTimeout("reconcile took longer than 300 s"), fl.errors.UserError("fix the file")):
        assert from_error(error).message == str(error)
