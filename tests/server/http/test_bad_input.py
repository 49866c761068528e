"""Tests that both servers reject malformed requests with the same error, and that neither hangs."""

import asyncio
import contextlib
import json
import ssl

import pytest
from tests.server.http.test_robustness import BOMB, nested

from fairlead.api.requests import HttpRequest

BAD = {
    "cut short": (b"{", "application/json"),
    "a NUL byte": (b'{"metadata":{"name":"n\x00"}}', "application/json"),
    "nested 20,000 deep": (nested(20_000), "application/json"),
    "an integer of 5,000 digits": (b'{"metadata":{"name":"n","generation":' + b"9" * 5_000 + b"}}", "application/json"),
    "a number too large": (b'{"metadata":{"name":"n","generation":1e400}}', "application/json"),
    "NaN": (b'{"metadata":{"name":"n","generation":NaN}}', "application/json"),
    "no UTF-8": (b"\xff\xfe\x00", "application/json"),
    "brackets in YAML": (b"[" * 10_000, "application/yaml"),
    "an alias bomb": (BOMB, "application/yaml"),
    "another type": (b'{"metadata":{"name":"n"}}', "text/plain"),
    "too large": (b'{"metadata":{"name":"n"},"data":{"k":"' + b"x" * (3 << 20) + b'"}}', "application/json"),
}
CODES = {"another type": 415, "too large": 413}


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")  # the client's, and meant here
@pytest.mark.parametrize("name", BAD)
async def test_a_malformed_body_gets_the_same_code_from_both_servers(api, name):
    body, kind = BAD[name]
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    response = await api.transport().request(
        HttpRequest("POST", path, headers={"Content-Type": kind}, body=body, timeout=20)
    )
    assert (response.status, json.loads(response.body)["code"]) == (CODES.get(name, 400), CODES.get(name, 400))


async def test_an_incomplete_request_does_not_block_other_requests(api):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = api.url.removeprefix("https://").split(":")
    _, incomplete_writer = await asyncio.open_connection(host, int(port), ssl=context)
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"
    incomplete_writer.write(
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode() + b'{"metadata":'
    )
    await incomplete_writer.drain()
    response = await api.transport().request(HttpRequest("GET", path, timeout=20))
    assert json.loads(response.body)["items"] == []
    incomplete_writer.close()
    with contextlib.suppress(ssl.SSLError):  # it may have answered after all
        await incomplete_writer.wait_closed()
