"""Tests that the listener and the in-process transport serve the same objects, and of `fairlead serve`."""

import base64
import json
import signal
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request

import aiohttp
import pytest

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_an_object_created_in_process_is_watched_over_http():
    server = Server(tokens=["t"])
    listener = await server.listen("127.0.0.1", 0, tls=False)
    client = server.transport()
    body = json.dumps({"metadata": {"name": "a"}, "data": {"k": "v"}}).encode()
    assert (await client.request(HttpRequest("POST", MAPS, body=body))).status == 201
    headers = {"Authorization": "Bearer t"}
    watch = f"{listener.url}{MAPS}?watch=true&resourceVersion=0"
    async with aiohttp.ClientSession(headers=headers) as session, session.get(watch) as response:
        event = json.loads(await response.content.readline())
        assert (event["type"], event["object"]["data"]) == ("ADDED", {"k": "v"})
        await client.request(HttpRequest("DELETE", f"{MAPS}/a"))
        event = json.loads(await response.content.readline())
        assert event["type"] == "DELETED"
    await listener.close()


async def test_a_request_with_a_wrong_token_gets_401():
    server = Server(tokens=["t"])
    response = await server.transport("wrong").request(HttpRequest("GET", "/healthz"))
    assert response.status == 401
    assert json.loads(response.body)["reason"] == "Unauthorized"


@pytest.mark.parametrize(("tls", "tokens"), [(False, ["t"]), (True, [])])
async def test_a_public_address_needs_tls_and_a_token(tls, tokens):
    with pytest.raises(ValueError, match="only with TLS and a token"):
        await Server(tokens=tokens).listen("0.0.0.0", 0, tls=tls)


async def test_resource_versions_start_above_100():
    server = Server(World())
    response = await server.transport().request(HttpRequest("GET", "/api/v1/namespaces/default"))
    assert int(json.loads(response.body)["metadata"]["resourceVersion"]) > 100


@pytest.mark.smoke
def test_serve_prints_its_address_and_stops_on_sigterm(tmp_path):
    path = tmp_path / "config"
    command = [sys.executable, "-m", "fairlead", "serve", "--listen", "127.0.0.1:0", "--write-kubeconfig", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == f"kubeconfig {path}\n"
            url = process.stdout.readline().removeprefix("serving on ").strip()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            config = json.loads(path.read_text())
            assert config["clusters"][0]["cluster"]["server"] == url
            token = config["users"][0]["user"]["token"]
            ca = tmp_path / "ca.pem"
            ca.write_bytes(base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]))
            context = ssl.create_default_context(cafile=str(ca))
            version_request = urllib.request.Request(f"{url}/version", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(version_request, context=context) as response:
                assert json.load(response)["major"] == "1"
            with pytest.raises(urllib.error.HTTPError, match="401") as rejection:
                urllib.request.urlopen(f"{url}/api", context=context)
            rejection.value.close()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0


def test_serve_rejects_a_public_address_without_tls_in_one_line():
    command = [sys.executable, "-m", "fairlead", "serve", "--listen", "0.0.0.0:0", "--no-tls"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert completed.returncode == 2
    assert "only with TLS and a token" in completed.stderr
    assert "Traceback" not in completed.stderr
