"""The health page tells what is wrong, and serves on loopback unless told otherwise."""

import aiohttp
import pytest

from fairlead.runtime.health import Health, address
from fairlead.runtime.metrics import Metrics


async def test_problems_are_told_with_503_and_their_absence_with_200():
    problems = {"Greeting": "the watch has not been fed"}
    metrics = Metrics()
    metrics.requests.labels("200", "GET", "").inc()
    async with (
        Health("127.0.0.1", 0, healthy=dict, ready=lambda: problems, metrics=metrics) as health,
        aiohttp.ClientSession(f"http://127.0.0.1:{health.port}") as session,
    ):
        async with session.get("/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
        async with session.get("/readyz") as answer:
            assert (answer.status, await answer.text()) == (503, "Greeting: the watch has not been fed\n")
        problems.clear()
        async with session.get("/readyz") as answer:
            assert answer.status == 200
        async with session.get("/metrics") as answer:
            assert 'rest_client_requests_total{code="200"' in await answer.text()


async def test_a_taken_address_is_an_error_with_a_remedy():
    async with Health("127.0.0.1", 0, healthy=dict, ready=dict, metrics=Metrics()) as health:
        with pytest.raises(OSError, match="use another address"):
            await Health("127.0.0.1", health.port, healthy=dict, ready=dict, metrics=Metrics()).__aenter__()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8080", ("127.0.0.1", 8080)), ("0.0.0.0:80", ("0.0.0.0", 80)), ("[::1]:9", ("::1", 9)), (":7", ("127.0.0.1", 7))],
)
def test_without_a_host_the_address_is_loopback(text, expected):
    assert address(text) == expected


@pytest.mark.parametrize("text", ["", "host", "1.2.3.4:", "1:99999"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="HOST:PORT"):
        address(text)
