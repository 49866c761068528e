"""Tests of exec plugins: no shell or terminal, cached until they expire, one line for a failure."""

import asyncio
import json
import os
import sys

import pytest

from fairlead.api.times import rfc3339
from fairlead.api.world import World
from fairlead.client import execplugin, kubeconfig
from fairlead.client.credentials import CredentialsError, Identity
from fairlead.client.execplugin import ExecCredentials, ExecPlugin

V1 = "client.authentication.k8s.io/v1"
NOW = 1_767_225_600.0


class Clock:
    """A clock that the test sets, because subprocesses need a real event loop."""

    at = NOW

    def now(self):
        return self.at

    monotonic = now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def plugin(tmp_path, clock):
    """plugin(body, **plugin fields) -> ExecCredentials whose program runs `body`, with `count()` runs so far."""

    def make(body, api_version=V1, **fields):
        script = tmp_path / "login"
        log = tmp_path / "runs"
        script.write_text(
            f"#!{sys.executable} -IS\nimport json, os, sys\nopen({str(log)!r}, 'a').write('x')\n"
            f"def give(**status): print(json.dumps("
            f"{{'kind': 'ExecCredential', 'apiVersion': {api_version!r}, 'status': status}}))\n{body}\n"
        )
        script.chmod(0o755)
        made = ExecCredentials(
            ExecPlugin(api_version, str(script), **fields), World(clock), {"PATH": "/usr/bin:/bin", "MINE": "1"}
        )
        made.count = lambda: len(log.read_text()) if log.exists() else 0
        return made

    return make


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_token_is_returned_and_cached(version, plugin):
    login = plugin("give(token='t')", f"client.authentication.k8s.io/{version}")
    for _ in range(3):
        assert await login.identity() == Identity("Bearer t")
    assert login.count() == 1


async def test_a_certificate_is_returned_with_its_key(plugin):
    login = plugin("give(clientCertificateData='C', clientKeyData='K')")
    assert await login.identity() == Identity(None, b"C", b"K")


async def test_the_plugin_runs_again_when_the_credential_expires(plugin, clock):
    login = plugin(f"give(token='t', expirationTimestamp={rfc3339(NOW + 100)!r})")
    await login.identity()
    clock.at = NOW + 89
    await login.identity()
    assert login.count() == 1
    clock.at = NOW + 91
    await login.identity()
    assert login.count() == 2


async def test_the_plugin_runs_once_for_many_requests_after_a_401(plugin):
    login = plugin("give(token=str(os.getpid()))")
    first = await asyncio.gather(*[login.identity() for _ in range(5)])
    for identity in first:
        login.on_unauthorized(identity)
    second = await asyncio.gather(*[login.identity() for _ in range(5)])
    login.on_unauthorized(first[0])  # a late 401 of the old identity does not drop the new one
    assert await login.identity() == second[0]
    assert len({identity.authorization for identity in first + second}) == 2
    assert login.count() == 2


async def test_the_plugin_gets_the_cluster_info_and_has_no_terminal(plugin):
    credentials = plugin(
        "give(token=json.dumps([sys.argv[1:], json.loads(os.environ['KUBERNETES_EXEC_INFO']), os.environ['MINE'],"
        " os.environ['THEIRS'], sys.stdin.read(), os.getsid(0) == os.getpid()]))",
        args=("a b", "$(touch /nope)", ";"),
        env=(("THEIRS", "2"),),
        info={"server": "https://c"},
    )
    token = (await credentials.identity()).authorization.removeprefix("Bearer ")
    info = {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False, "cluster": {"server": "https://c"}},
    }
    assert json.loads(token) == [["a b", "$(touch /nope)", ";"], info, "1", "2", "", True]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('please\\nlog in \\x1b[2J')", "ended with 1: please log in"),
        ("sys.exit(3)", "ended with 3: no error output"),
        ("print('hello')", "did not print an ExecCredential"),
        ("print('{}')", "did not print an ExecCredential with a status"),
        ("give()", "neither a token nor a certificate: are you logged in"),
        ("give(clientCertificateData='C')", "certificate without its key"),
        ("give(token='secret\\nx')", "cannot be sent"),
        ("give(token='secret', expirationTimestamp='soon')", "not RFC 3339"),
        ("print(json.dumps({'kind': 'ExecCredential', 'apiVersion': 'x/v9', 'status': {}}))", "make them agree"),
    ],
)
async def test_a_plugin_failure_is_one_line_without_secrets(body, message, plugin):
    with pytest.raises(CredentialsError, match=message) as raised:
        await plugin(body).identity()
    assert str(raised.value).isprintable()
    assert "secret" not in str(raised.value)


async def test_a_missing_plugin_error_shows_the_install_hint():
    missing = ExecCredentials(
        ExecPlugin(V1, "no-such-login", install_hint="brew install it"), World(), {"PATH": "/nope"}
    )
    with pytest.raises(CredentialsError, match="not in PATH: brew install it"):
        await missing.identity()


async def test_a_plugin_run_continues_when_its_caller_is_cancelled(plugin, tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    login = plugin(f"open({str(go)!r}).read()\ngive(token='t')")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(login.identity(), 0.01)
    second = asyncio.create_task(login.identity())
    await asyncio.to_thread(go.write_text, "")
    assert await second == Identity("Bearer t")
    assert login.count() == 1


async def test_the_plugin_runs_again_after_a_failure(plugin, tmp_path):
    login = plugin(f"sys.exit('log in') if not os.path.exists({str(tmp_path / 'in')!r}) else give(token='t')")
    with pytest.raises(CredentialsError, match="log in"):
        await login.identity()
    (tmp_path / "in").touch()
    assert await login.identity() == Identity("Bearer t")


async def test_a_plugin_that_hangs_times_out(plugin, monkeypatch):
    monkeypatch.setattr(execplugin, "TIME_LIMIT", 0.05)
    with pytest.raises(CredentialsError, match=r"did not answer within 0\.05 s: run it by hand"):
        await plugin("import time\ntime.sleep(60)").identity()


async def test_a_plugin_that_times_out_is_killed_with_its_children(plugin, tmp_path):
    held = tmp_path / "held"
    os.mkfifo(held)
    login = asyncio.create_task(
        plugin(f"if not os.fork(): held = open({str(held)!r}, 'w')\nimport time\ntime.sleep(20)")._run()
    )
    with await asyncio.to_thread(held.open) as reading:  # returns when the plugin's child has opened it
        login.cancel()
        ended, _ = await asyncio.wait({login}, timeout=10)
        assert ended
        assert login.cancelled()
        # Ends when no process has the other end open.
        assert not await asyncio.wait_for(asyncio.to_thread(reading.read), 10)


async def test_an_exec_command_is_relative_to_its_kubeconfig(plugin, tmp_path):
    plugin("give(token=os.environ['KUBERNETES_EXEC_INFO'])")
    entry = {"apiVersion": V1, "command": "./login", "interactiveMode": "IfAvailable", "provideClusterInfo": True}
    cluster = {
        "server": "https://c.example",
        "certificate-authority-data": "Q0E=",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    }
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"exec": entry}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(content))
    access = kubeconfig.load(World(), path=path, context="here", env={"PATH": "/usr/bin:/bin"})
    token = (await access.credentials.identity()).authorization.removeprefix("Bearer ")
    assert json.loads(token)["spec"]["cluster"] == {
        "server": "https://c.example",
        "certificate-authority-data": "Q0E=",
        "config": {"audience": "x"},
    }
