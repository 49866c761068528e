"""Tests that a real server is found like envtest finds it, uses verified TLS, and is stopped after the tests."""

import json
import subprocess
import sys
import urllib.error
from pathlib import Path

import pytest

from fairlead.api.requests import HttpRequest
from fairlead.testing import real


@pytest.fixture
def no_binaries(monkeypatch, tmp_path):
    for variable in ("TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER", "KUBEBUILDER_ASSETS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if Path("/usr/local/kubebuilder/bin").is_dir():
        pytest.skip("this machine has envtest's own folder")


def executable(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.usefixtures("no_binaries")
def test_without_binaries_the_remedy_is_named():
    assert real.missing().startswith("etcd and kube-apiserver not found: set KUBEBUILDER_ASSETS")
    server = real.RealServer()
    with pytest.raises(real.RealServerError, match="make real"):
        server.start()
    assert not server._folder.exists()


@pytest.mark.usefixtures("no_binaries")
def test_lookup_goes_from_the_named_file_over_the_assets_folder_to_the_cache(monkeypatch, tmp_path):
    cached = executable(real.cache_folder() / "etcd")
    assert real.find("etcd") == cached
    asset = executable(tmp_path / "assets" / "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(asset.parent))
    assert real.find("etcd") == asset
    named_file = executable(tmp_path / "my-etcd")
    monkeypatch.setenv("TEST_ASSET_ETCD", str(named_file))
    assert real.find("etcd") == named_file


def test_a_variable_that_names_a_missing_file_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("TEST_ASSET_KUBE_APISERVER", str(tmp_path / "absent"))
    with pytest.raises(real.RealServerError, match="TEST_ASSET_KUBE_APISERVER"):
        real.find("kube-apiserver")


@pytest.mark.usefixtures("no_binaries")
def test_a_server_that_ends_while_starting_is_reported_with_its_log(monkeypatch, tmp_path):
    for name in ("etcd", "kube-apiserver"):
        executable(tmp_path / name).write_text("#!/bin/sh\necho no such luck >&2; exit 3\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    server = real.RealServer()
    with pytest.raises(real.RealServerError, match="ended while starting: no such luck"):
        server.start()
    assert not server._folder.exists()


@pytest.mark.real
def test_the_real_server_is_the_release_it_claims_to_be(real_server):
    assert json.loads(real_server.request("GET", "/version"))["gitVersion"] == real.VERSION


@pytest.mark.real
def test_a_wrong_token_is_refused_over_verified_tls(real_server, monkeypatch):
    monkeypatch.setattr(real_server, "token", "wrong")
    with pytest.raises(urllib.error.HTTPError) as raised:
        real_server.request("GET", "/api/v1/namespaces")
    assert raised.value.code == 401
    raised.value.close()


@pytest.mark.real
def test_an_audit_log_has_each_request_with_its_answer(tmp_path):
    with real.RealServer(audit=tmp_path / "audit.log") as server:
        server.request("GET", "/api/v1/namespaces/default/configmaps")
        events = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    logged_requests = [
        e for e in events if e.get("objectRef", {}).get("resource") == "configmaps" and e["verb"] == "list"
    ]
    assert {e["stage"] for e in events} <= {"ResponseStarted", "ResponseComplete", "Panic"}
    assert any(e["responseStatus"]["code"] == 200 and e["user"]["username"] == "admin" for e in logged_requests)


@pytest.mark.real
def test_both_processes_and_their_folder_are_gone_when_the_run_is_killed():
    code = """
import os, signal
from fairlead.testing.real import RealServer
server = RealServer().start()
print(server._folder, *(p.pid for p in server._processes), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    folder, *pids = run.stdout.split()
    assert run.returncode == -9
    assert len(pids) == 2
    wait_until_gone = 'while [ -e "$1" ] || ps -o stat= -p "$2,$3" | grep -qv Z; do sleep 0.05; done'
    subprocess.run(["/bin/sh", "-c", wait_until_gone, "sh", folder, *pids], check=True, timeout=30)


async def test_a_test_that_takes_api_gets_a_namespace_of_its_own(api):
    response = await api.transport().request(HttpRequest("GET", f"/api/v1/namespaces/{api.namespace}"))
    assert response.status == 200
    assert api.url.startswith("https://127.0.0.1:")
