"""Tests of the retries and the errors of requests, in virtual time."""

import asyncio

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import (
    ApiError,
    BadRequest,
    Conflict,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
    UnknownOutcome,
    may_have_happened,
)
from fairlead.client.client import PatchType
from fairlead.client.credentials import CredentialsError
from fairlead.client.transport import NotSent
from fairlead.testing import virtual

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}

# An answer that fits every verb: an object, and also a list.
ANSWER = {**OBJECT, "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": []}

VERBS = {
    "get": lambda client: client.get(ConfigMap, "a", "n"),
    "list": lambda client: client.list(ConfigMap, "n"),
    "create": lambda client: client.create(OBJECT),
    "replace": lambda client: client.replace(OBJECT),
    "patch": lambda client: client.patch(ConfigMap, "a", "n", [], type=PatchType.JSON),
    "apply": lambda client: client.apply(OBJECT, field_manager="me"),
    "delete": lambda client: client.delete(ConfigMap, "a", "n"),
}
READS = ["get", "list"]
WRITES = ["create", "replace", "patch", "apply", "delete"]


def run_and_time(call):
    """Run `call` in virtual time. Return its result or exception, and the seconds it took."""

    async def main():
        loop = asyncio.get_running_loop()
        try:
            result = await call()
        except BaseException as error:
            result = error
        return result, loop.time()

    return virtual.run(main())


@pytest.mark.parametrize("verb", VERBS)
def test_429_with_retry_after_is_retried_for_every_verb(verb, scripted_client, response, error_response):
    client, transport = scripted_client(
        error_response(429, "TooManyRequests", retryAfterSeconds=3),
        response(429, body=b"slow down", headers={"Retry-After": "2"}),
        response(json=ANSWER),
    )
    result, seconds = run_and_time(lambda: VERBS[verb](client))
    assert not isinstance(result, BaseException)
    assert len(transport.requests) == 3
    assert 5 <= seconds <= 6.25


@pytest.mark.parametrize(
    "error_details",
    [
        pytest.param([{}], id="no Retry-After"),
        pytest.param([{"retryAfterSeconds": 60}], id="longer than we wait"),
        pytest.param([{"retryAfterSeconds": 1}] * 4, id="again and again"),
    ],
)
def test_429_with_a_long_or_missing_retry_after_is_raised(error_details, scripted_client, error_response):
    client, transport = scripted_client(
        *[error_response(429, "TooManyRequests", **details) for details in error_details]
    )
    result, seconds = run_and_time(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, TooManyRequests)
    assert seconds < 5
    assert not transport.responses


@pytest.mark.parametrize("verb", READS)
@pytest.mark.parametrize("fault", ["503", "reset", "refused"])
def test_reads_are_retried_during_a_short_outage(verb, fault, scripted_client, response, error_response):
    faults = {
        "503": lambda: error_response(503, "ServiceUnavailable", retryAfterSeconds=1),
        "reset": lambda: ConnectionResetError("reset"),
        "refused": lambda: NotSent("refused"),
    }
    client, transport = scripted_client(faults[fault](), faults[fault](), response(json=ANSWER))
    result, _ = run_and_time(lambda: VERBS[verb](client))
    assert not isinstance(result, BaseException)
    assert len(transport.requests) == 3


def test_reads_raise_after_a_long_outage(scripted_client):
    client, transport = scripted_client(*[NotSent("refused")] * 4)
    result, seconds = run_and_time(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, NotSent)
    assert seconds < 2
    assert not transport.responses


def test_a_read_that_timed_out_is_not_retried(scripted_client):
    client, transport = scripted_client(100)
    result, seconds = run_and_time(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, TimeoutError)
    assert seconds == 30
    assert len(transport.requests) == 1


def test_a_credentials_error_is_not_retried(scripted_client):
    client, transport = scripted_client(CredentialsError("log in"))
    result, _ = run_and_time(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, CredentialsError)
    assert len(transport.requests) == 1


@pytest.mark.parametrize("verb", WRITES)
def test_a_write_that_was_not_sent_raises_not_sent_without_a_retry(verb, scripted_client):
    client, transport = scripted_client(NotSent("refused"))
    result, _ = run_and_time(lambda: VERBS[verb](client))
    assert isinstance(result, NotSent)
    assert not may_have_happened(result)
    assert len(transport.requests) == 1


LOST_RESPONSES = {
    "reset": lambda response, error_response: ConnectionResetError("reset"),
    "a bug": lambda response, error_response: RuntimeError("unforeseen"),
    "time ran out": lambda response, error_response: 100,
    "504": lambda response, error_response: error_response(504, "Timeout", retryAfterSeconds=1),
    "503": lambda response, error_response: error_response(503, "ServiceUnavailable", retryAfterSeconds=1),
    "ServerTimeout": lambda response, error_response: error_response(500, "ServerTimeout", retryAfterSeconds=1),
    "gateway": lambda response, error_response: response(502, body=b"<h1>Bad Gateway</h1>"),
    "storage": lambda response, error_response: error_response(500, "", "etcdserver: request timed out"),
    "unreadable": lambda response, error_response: response(200, body=b"<h1>Log in</h1>"),
    "cut": lambda response, error_response: response(200, body=b'{"kind":'),
}


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("fault", LOST_RESPONSES)
def test_a_write_with_a_lost_answer_raises_unknown_outcome_and_is_sent_once(
    verb, fault, scripted_client, response, error_response
):
    client, transport = scripted_client(LOST_RESPONSES[fault](response, error_response))
    result, _ = run_and_time(lambda: VERBS[verb](client))
    assert isinstance(result, UnknownOutcome)
    assert result.__cause__ is not None
    assert may_have_happened(result)
    assert len(transport.requests) == 1


@pytest.mark.parametrize("verb", WRITES)
def test_a_cancelled_write_raises_cancelled_error_caused_by_unknown_outcome(verb, scripted_client):
    async def main():
        client, _ = scripted_client(10)
        was_sent = []

        async def write_once():
            try:
                await VERBS[verb](client)
            except asyncio.CancelledError as error:
                was_sent.append(may_have_happened(error))
                raise

        task = asyncio.create_task(write_once())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert was_sent == [True]

    virtual.run(main())


def test_a_write_that_timed_out_raises_unknown_outcome(scripted_client):
    async def main():
        client, _ = scripted_client(10)
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(1):
                await client.create(OBJECT)
        assert may_have_happened(raised.value)

    virtual.run(main())


def test_a_write_cancelled_between_two_attempts_did_not_happen(scripted_client, error_response):
    async def main():
        client, _ = scripted_client(error_response(429, "TooManyRequests", retryAfterSeconds=5))
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(1):
                await client.create(OBJECT)
        assert not may_have_happened(raised.value)

    virtual.run(main())


def test_a_cancelled_read_has_no_unknown_outcome(scripted_client):
    async def main():
        client, _ = scripted_client(10)
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(1):
                await client.get(ConfigMap, "a", "n")
        assert not may_have_happened(raised.value)

    virtual.run(main())


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (500, "", "failed to create typed patch object: .spec.x: field not declared in schema"),
        (500, "InternalError", "failed calling webhook"),
        (409, "Conflict", "the object has been modified"),
        (422, "Invalid", "the server rejected our request due to an error in our request"),
    ],
)
def test_a_rejected_write_raises_its_reason_and_is_sent_once(code, reason, message, scripted_client, error_response):
    client, transport = scripted_client(error_response(code, reason, message, retryAfterSeconds=1))
    result, _ = run_and_time(lambda: client.apply(OBJECT, field_manager="me"))
    assert isinstance(result, ApiError)
    assert (result.code, result.reason, result.message) == (code, reason, message)
    assert len(transport.requests) == 1


def test_a_dry_run_is_retried_like_a_read(scripted_client, response):
    client, transport = scripted_client(ConnectionResetError(), response(json=OBJECT))
    result, _ = run_and_time(lambda: client.apply(OBJECT, field_manager="me", dry_run=True))
    assert result == OBJECT
    assert [request[2]["dryRun"] for request in transport.requests] == ["All", "All"]


@pytest.mark.parametrize("verb", VERBS)
def test_401_is_retried_once_because_the_token_may_have_rotated(verb, scripted_client, response, error_response):
    client, transport = scripted_client(error_response(401, "Unauthorized"), response(json=ANSWER))
    result, _ = run_and_time(lambda: VERBS[verb](client))
    assert not isinstance(result, BaseException)
    client, transport = scripted_client(error_response(401, "Unauthorized"), error_response(401, "Unauthorized"))
    result, _ = run_and_time(lambda: VERBS[verb](client))
    assert isinstance(result, Unauthorized)
    assert len(transport.requests) == 2


@pytest.mark.parametrize(
    ("code", "body", "kind", "expected_message"),
    [
        (404, b'{"kind":"Status","reason":"NotFound","message":"x","code":404,"details":{"name":"a"}}', NotFound, "x"),
        (409, b'{"kind":"Status","reason":"Conflict","message":"x","code":409}', Conflict, "x"),
        (503, b"<html>\x1b[2Jdown", ServiceUnavailable, "HTTP 503, not from an API server: <html> [2Jdown"),
        (418, b"", ApiError, "HTTP 418, not from an API server: no body"),
        (403, b"\xff\xfe", ApiError, "HTTP 403"),
        (400, b"[1]", ApiError, "HTTP 400"),
        (400, b'{"message":"x"}', BadRequest, "HTTP 400, not from"),
        (409, b'{"kind":"Status","reason":"Conflict","details":["x"]}', ApiError, "HTTP 409, not from"),
        (409, b'{"kind":"Status","reason":{"a":1}}', ApiError, "HTTP 409, not from"),
        (429, b'{"kind":"Status","details":{"retryAfterSeconds":"soon"}}', TooManyRequests, "HTTP 429, not from"),
    ],
)
def test_errors_are_typed_by_reason_and_other_bodies_are_quoted(
    code, body, kind, expected_message, scripted_client, response
):
    client, _ = scripted_client(response(code, body=body))
    result, _ = run_and_time(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, kind)
    assert expected_message in result.message
    assert result.code == code


def test_a_redirect_raises_an_error_that_names_its_location(scripted_client, response):
    client, transport = scripted_client(response(307, headers={"Location": "https://elsewhere/"}))
    result, _ = run_and_time(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, ApiError)
    assert "https://elsewhere/" in result.message
    assert len(transport.requests) == 1


def test_the_observer_is_called_for_every_request(scripted_client, response, error_response):
    observed_requests = []
    client, _ = scripted_client(
        2,
        response(json=OBJECT),
        error_response(429, "TooManyRequests", retryAfterSeconds=1),
        ConnectionResetError(),
        response(chunks=[]),
        observe=lambda *row: observed_requests.append(row),
    )

    async def main():
        await client.get(ConfigMap, "a", "n")
        with pytest.raises(UnknownOutcome):
            await client.create(OBJECT)
        async with client.watch(ConfigMap):
            pass

    virtual.run(main())
    path = "/api/v1/namespaces/n/configmaps"
    assert [row[:3] for row in observed_requests[1:]] == [
        ("GET", f"{path}/a", "200"),
        ("POST", path, "429"),
        ("POST", path, "<error>"),
        ("GET", "/api/v1/configmaps", "200"),
    ]
    assert observed_requests[1][3] == 2


def test_each_warning_of_the_server_is_logged_once_and_made_printable(scripted_client, response, caplog):
    server_warnings = ['299 - "unknown field\x1b[2J"']
    client, _ = scripted_client(*[response(json=OBJECT, warnings=server_warnings) for _ in range(3)])

    async def main():
        for _ in range(3):
            await client.get(ConfigMap, "a", "n")

    virtual.run(main())
    assert [record.getMessage() for record in caplog.records] == ['the server warns: 299 - "unknown field [2J"']
