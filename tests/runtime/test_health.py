"""Tests that the health endpoints report problems, and that they listen on loopback unless a host is set."""

import aiohttp
import pytest

from fairlead.runtime.health import Health, address
from fairlead.runtime.metrics import Metrics


async def test_health_endpoint_returns_503_with_problems_and_200_without():
    problems = {"Greeting": "the watch has not been fed"}
    metrics = Metrics()
    metrics.requests.labels("200", "GET", "").inc()
    async with (
        Health("127.0.0.1", 0, healthy=dict, ready=lambda: problems, metrics=metrics) as health,
        aiohttp.ClientSession(f"http://127.0.0.1:{health.port}") as session,
    ):
        async with session.get("/healthz") as response:
            assert (response.status, await response.text()) == (200, "ok\n")
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (503, "Greeting: the watch has not been fed\n")
        problems.clear()
        async with session.get("/readyz") as response:
            assert response.status == 200
        async with session.get("/metrics") as response:
            assert 'rest_client_requests_total{code="200"' in await response.text()


async def test_address_in_use_is_reported_with_the_remedy():
    async with Health("127.0.0.1", 0, healthy=dict, ready=dict, metrics=Metrics()) as health:
        with pytest.raises(OSError, match="use another address"):
            await Health("127.0.0.1", health.port, healthy=dict, ready=dict, metrics=Metrics()).__aenter__()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8080", ("127.0.0.1", 8080)), ("0.0.0.0:80", ("0.0.0.0", 80)), ("[::1]:9", ("::1", 9)), (":7", ("127.0.0.1", 7))],
)
def test_address_without_a_host_is_loopback(text, expected):
    assert address(text) == expected


@pytest.mark.parametrize("text", ["", "host", "1.2.3.4:", "1:99999"])
def test_invalid_address_is_rejected(text):
    with pytest.raises(ValueError, match="HOST:PORT"):
        address(text)
