"""Tests of retries and errors of requests, in virtual time."""

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
    "get": lambda c: c.get(ConfigMap, "a", "n"),
    "list": lambda c: c.list(ConfigMap, "n"),
    "create": lambda c: c.create(OBJECT),
    "replace": lambda c: c.replace(OBJECT),
    "patch": lambda c: c.patch(ConfigMap, "a", "n", [], type=PatchType.JSON),
    "apply": lambda c: c.apply(OBJECT, field_manager="me"),
    "delete": lambda c: c.delete(ConfigMap, "a", "n"),
}
READS = ["get", "list"]
WRITES = ["create", "replace", "patch", "apply", "delete"]


def outcome(call):
    """Return (answer or exception, seconds that it took)."""

    async def main():
        loop = asyncio.get_running_loop()
        try:
            result = await call()
        except BaseException as error:
            result = error
        return result, loop.time()

    return virtual.run(main())


@pytest.mark.parametrize("verb", VERBS)
def test_429_with_retry_after_is_retried_for_every_verb(verb, scripted, answer, refusal):
    client, transport = scripted(
        refusal(429, "TooManyRequests", retryAfterSeconds=3),
        answer(429, body=b"slow down", headers={"Retry-After": "2"}),
        answer(json=ANSWER),
    )
    result, seconds = outcome(lambda: VERBS[verb](client))
    assert not isinstance(result, BaseException)
    assert len(transport.asked) == 3
    assert 5 <= seconds <= 6.25


@pytest.mark.parametrize(
    "refusals",
    [
        pytest.param([{}], id="no Retry-After"),
        pytest.param([{"retryAfterSeconds": 60}], id="longer than we wait"),
        pytest.param([{"retryAfterSeconds": 1}] * 4, id="again and again"),
    ],
)
def test_429_with_a_long_or_missing_retry_after_is_raised(refusals, scripted, refusal):
    client, transport = scripted(*[refusal(429, "TooManyRequests", **details) for details in refusals])
    result, seconds = outcome(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, TooManyRequests)
    assert seconds < 5
    assert not transport.answers


@pytest.mark.parametrize("verb", READS)
@pytest.mark.parametrize("fault", ["503", "reset", "refused"])
def test_reads_are_retried_during_a_short_outage(verb, fault, scripted, answer, refusal):
    faults = {
        "503": lambda: refusal(503, "ServiceUnavailable", retryAfterSeconds=1),
        "reset": lambda: ConnectionResetError("reset"),
        "refused": lambda: NotSent("refused"),
    }
    client, transport = scripted(faults[fault](), faults[fault](), answer(json=ANSWER))
    result, _ = outcome(lambda: VERBS[verb](client))
    assert not isinstance(result, BaseException)
    assert len(transport.asked) == 3


def test_reads_raise_after_a_long_outage(scripted):
    client, transport = scripted(*[NotSent("refused")] * 4)
    result, seconds = outcome(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, NotSent)
    assert seconds < 2
    assert not transport.answers


def test_a_read_that_timed_out_is_not_retried(scripted):
    client, transport = scripted(100)
    result, seconds = outcome(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, TimeoutError)
    assert seconds == 30
    assert len(transport.asked) == 1


def test_a_credentials_error_is_not_retried(scripted):
    client, transport = scripted(CredentialsError("log in"))
    result, _ = outcome(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, CredentialsError)
    assert len(transport.asked) == 1


@pytest.mark.parametrize("verb", WRITES)
def test_a_write_that_was_not_sent_raises_not_sent_without_a_retry(verb, scripted):
    client, transport = scripted(NotSent("refused"))
    result, _ = outcome(lambda: VERBS[verb](client))
    assert isinstance(result, NotSent)
    assert not may_have_happened(result)
    assert len(transport.asked) == 1


LOST = {
    "reset": lambda a, r: ConnectionResetError("reset"),
    "a bug": lambda a, r: RuntimeError("unforeseen"),
    "time ran out": lambda a, r: 100,
    "504": lambda a, r: r(504, "Timeout", retryAfterSeconds=1),
    "503": lambda a, r: r(503, "ServiceUnavailable", retryAfterSeconds=1),
    "ServerTimeout": lambda a, r: r(500, "ServerTimeout", retryAfterSeconds=1),
    "gateway": lambda a, r: a(502, body=b"<h1>Bad Gateway</h1>"),
    "storage": lambda a, r: r(500, "", "etcdserver: request timed out"),
    "unreadable": lambda a, r: a(200, body=b"<h1>Log in</h1>"),
    "cut": lambda a, r: a(200, body=b'{"kind":'),
}


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("fault", LOST)
def test_a_write_with_a_lost_answer_raises_unknown_outcome_and_is_sent_once(verb, fault, scripted, answer, refusal):
    client, transport = scripted(LOST[fault](answer, refusal))
    result, _ = outcome(lambda: VERBS[verb](client))
    assert isinstance(result, UnknownOutcome)
    assert result.__cause__ is not None
    assert may_have_happened(result)
    assert len(transport.asked) == 1


@pytest.mark.parametrize("verb", WRITES)
def test_a_cancelled_write_raises_cancelled_error_caused_by_unknown_outcome(verb, scripted):
    async def main():
        client, _ = scripted(10)
        caught = []

        async def discipline():
            try:
                await VERBS[verb](client)
            except asyncio.CancelledError as error:
                caught.append(may_have_happened(error))
                raise

        task = asyncio.create_task(discipline())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert caught == [True]

    virtual.run(main())


def test_a_write_that_timed_out_raises_unknown_outcome(scripted):
    async def main():
        client, _ = scripted(10)
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(1):
                await client.create(OBJECT)
        assert may_have_happened(raised.value)

    virtual.run(main())


def test_a_write_cancelled_between_two_attempts_did_not_happen(scripted, refusal):
    async def main():
        client, _ = scripted(refusal(429, "TooManyRequests", retryAfterSeconds=5))
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(1):
                await client.create(OBJECT)
        assert not may_have_happened(raised.value)

    virtual.run(main())


def test_a_cancelled_read_has_no_unknown_outcome(scripted):
    async def main():
        client, _ = scripted(10)
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
def test_a_rejected_write_raises_its_reason_and_is_sent_once(code, reason, message, scripted, refusal):
    client, transport = scripted(refusal(code, reason, message, retryAfterSeconds=1))
    result, _ = outcome(lambda: client.apply(OBJECT, field_manager="me"))
    assert isinstance(result, ApiError)
    assert (result.code, result.reason, result.message) == (code, reason, message)
    assert len(transport.asked) == 1


def test_a_dry_run_is_retried_like_a_read(scripted, answer):
    client, transport = scripted(ConnectionResetError(), answer(json=OBJECT))
    result, _ = outcome(lambda: client.apply(OBJECT, field_manager="me", dry_run=True))
    assert result == OBJECT
    assert [asked[2]["dryRun"] for asked in transport.asked] == ["All", "All"]


@pytest.mark.parametrize("verb", VERBS)
def test_401_is_retried_once_because_the_token_may_have_rotated(verb, scripted, answer, refusal):
    client, transport = scripted(refusal(401, "Unauthorized"), answer(json=ANSWER))
    result, _ = outcome(lambda: VERBS[verb](client))
    assert not isinstance(result, BaseException)
    client, transport = scripted(refusal(401, "Unauthorized"), refusal(401, "Unauthorized"))
    result, _ = outcome(lambda: VERBS[verb](client))
    assert isinstance(result, Unauthorized)
    assert len(transport.asked) == 2


@pytest.mark.parametrize(
    ("code", "body", "kind", "quoted"),
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
def test_errors_are_typed_by_reason_and_other_bodies_are_quoted(code, body, kind, quoted, scripted, answer):
    client, _ = scripted(answer(code, body=body))
    result, _ = outcome(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, kind)
    assert quoted in result.message
    assert result.code == code


def test_a_redirect_raises_an_error_that_names_its_location(scripted, answer):
    client, transport = scripted(answer(307, headers={"Location": "https://elsewhere/"}))
    result, _ = outcome(lambda: client.get(ConfigMap, "a", "n"))
    assert isinstance(result, ApiError)
    assert "https://elsewhere/" in result.message
    assert len(transport.asked) == 1


def test_the_observer_is_called_for_every_request(scripted, answer, refusal):
    seen = []
    client, _ = scripted(
        2,
        answer(json=OBJECT),
        refusal(429, "TooManyRequests", retryAfterSeconds=1),
        ConnectionResetError(),
        answer(chunks=[]),
        observe=lambda *row: seen.append(row),
    )

    async def main():
        await client.get(ConfigMap, "a", "n")
        with pytest.raises(UnknownOutcome):
            await client.create(OBJECT)
        async with client.watch(ConfigMap):
            pass

    virtual.run(main())
    assert [(method, code) for method, code, _ in seen[1:]] == [
        ("GET", "200"),
        ("POST", "429"),
        ("POST", "<error>"),
        ("GET", "200"),
    ]
    assert seen[1][2] == 2


def test_each_warning_of_the_server_is_logged_once_and_made_printable(scripted, answer, caplog):
    warned = ['299 - "unknown field\x1b[2J"']
    client, _ = scripted(*[answer(json=OBJECT, warnings=warned) for _ in range(3)])

    async def main():
        for _ in range(3):
            await client.get(ConfigMap, "a", "n")

    virtual.run(main())
    assert [record.getMessage() for record in caplog.records] == ['the server warns: 299 - "unknown field [2J"']
