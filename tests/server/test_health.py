"""The health paths have the checks of a real server."""

import pytest

from fairlead.api.requests import HttpRequest

CASES = [
    # path, query, the first line of the response, a line in it, the last line
    ("/healthz", {}, "ok", "ok", "ok"),
    ("/healthz", {"verbose": ""}, "[+]ping ok", "[+]loopback-serving-certificate ok", "healthz check passed"),
    ("/livez", {"verbose": ""}, "[+]ping ok", "[+]autoregister-completion ok", "livez check passed"),
    ("/readyz", {"verbose": "0"}, "[+]ping ok", "[+]informer-sync ok", "readyz check passed"),
    ("/readyz", {"verbose": "", "exclude": "etcd"}, "[+]ping ok", "[+]etcd excluded: ok", "readyz check passed"),
    (
        "/readyz",
        {"verbose": "", "exclude": "nope"},
        "[+]ping ok",
        'warn: some health checks cannot be excluded: no matches for "nope"',
        "readyz check passed",
    ),
    ("/readyz", {"exclude": "nope"}, "ok", "ok", "ok"),
    ("/healthz/etcd", {}, "ok", "ok", "ok"),
    ("/livez/etcd", {"verbose": ""}, "ok", "ok", "ok"),
    ("/readyz/poststarthook/rbac/bootstrap-roles", {}, "ok", "ok", "ok"),
]


@pytest.mark.parametrize(("path", "query", "first", "some", "last"), CASES)
async def test_health_checks(api, path, query, first, some, last):
    response = await api.transport().request(HttpRequest("GET", path, query=query))
    lines = response.body.decode().rstrip("\n").split("\n")
    assert (response.status, lines[0], lines[-1]) == (200, first, last)
    assert some in lines


@pytest.mark.parametrize("path", ["/healthz/nope", "/readyz/", "/livez/informer-sync", "/readyz/etcd/x"])
async def test_a_missing_check_is_a_plain_404(api, path):
    response = await api.transport().request(HttpRequest("GET", path))
    assert (response.status, response.body) == (404, b"404 page not found\n")
