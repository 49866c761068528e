"""Tests of exec plugins: no shell, credentials that are cached until they expire, and one-line errors."""

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
    """A clock that the test sets. Subprocesses need a real event loop, so virtual time cannot be used."""

    time = NOW

    def now(self):
        return self.time

    monotonic = now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def exec_credentials(tmp_path, clock):
    """Return a function that creates ExecCredentials from the Python code of a plugin.

    `count()` returns the number of runs.
    """

    def make_credentials(body, api_version=V1, **fields):
        script = tmp_path / "login"
        log = tmp_path / "runs"
        script.write_text(
            f"#!{sys.executable} -IS\nimport json, os, sys\nopen({str(log)!r}, 'a').write('x')\n"
            f"def give(**status): print(json.dumps("
            f"{{'kind': 'ExecCredential', 'apiVersion': {api_version!r}, 'status': status}}))\n{body}\n"
        )
        script.chmod(0o755)
        credentials = ExecCredentials(
            ExecPlugin(api_version, str(script), **fields), World(clock), {"PATH": "/usr/bin:/bin", "MINE": "1"}
        )
        credentials.count = lambda: len(log.read_text()) if log.exists() else 0
        return credentials

    return make_credentials


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_token_is_returned_and_cached(version, exec_credentials):
    credentials = exec_credentials("give(token='t')", f"client.authentication.k8s.io/{version}")
    for _ in range(3):
        assert await credentials.identity() == Identity("Bearer t")
    assert credentials.count() == 1


async def test_a_certificate_is_returned_with_its_key(exec_credentials):
    credentials = exec_credentials("give(clientCertificateData='C', clientKeyData='K')")
    assert await credentials.identity() == Identity(None, b"C", b"K")


async def test_the_plugin_runs_again_when_the_credential_expires(exec_credentials, clock):
    credentials = exec_credentials(f"give(token='t', expirationTimestamp={rfc3339(NOW + 100)!r})")
    await credentials.identity()
    clock.time = NOW + 89
    await credentials.identity()
    assert credentials.count() == 1
    clock.time = NOW + 91
    await credentials.identity()
    assert credentials.count() == 2


async def test_the_plugin_runs_once_for_many_requests_after_a_401(exec_credentials):
    credentials = exec_credentials("give(token=str(os.getpid()))")
    first_identities = await asyncio.gather(*[credentials.identity() for _ in range(5)])
    for identity in first_identities:
        credentials.on_unauthorized(identity)
    second_identities = await asyncio.gather(*[credentials.identity() for _ in range(5)])
    credentials.on_unauthorized(first_identities[0])  # a late 401 of the old identity does not drop the new one
    assert await credentials.identity() == second_identities[0]
    assert len({identity.authorization for identity in first_identities + second_identities}) == 2
    assert credentials.count() == 2


async def test_the_plugin_gets_the_cluster_info_and_has_no_terminal(exec_credentials):
    credentials = exec_credentials(
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
async def test_a_plugin_failure_is_one_line_without_secrets(body, message, exec_credentials):
    with pytest.raises(CredentialsError, match=message) as raised:
        await exec_credentials(body).identity()
    assert str(raised.value).isprintable()
    assert "secret" not in str(raised.value)


async def test_a_missing_plugin_error_shows_the_install_hint():
    credentials = ExecCredentials(
        ExecPlugin(V1, "no-such-login", install_hint="brew install it"), World(), {"PATH": "/nope"}
    )
    with pytest.raises(CredentialsError, match="not in PATH: brew install it"):
        await credentials.identity()


async def test_a_plugin_run_continues_when_its_caller_is_cancelled(exec_credentials, tmp_path):
    may_continue = tmp_path / "go"
    os.mkfifo(may_continue)
    credentials = exec_credentials(f"open({str(may_continue)!r}).read()\ngive(token='t')")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(credentials.identity(), 0.01)
    second_identities = asyncio.create_task(credentials.identity())
    await asyncio.to_thread(may_continue.write_text, "")
    assert await second_identities == Identity("Bearer t")
    assert credentials.count() == 1


async def test_the_plugin_runs_again_after_a_failure(exec_credentials, tmp_path):
    credentials = exec_credentials(
        f"sys.exit('log in') if not os.path.exists({str(tmp_path / 'in')!r}) else give(token='t')"
    )
    with pytest.raises(CredentialsError, match="log in"):
        await credentials.identity()
    (tmp_path / "in").touch()
    assert await credentials.identity() == Identity("Bearer t")


async def test_a_plugin_that_hangs_times_out(exec_credentials, monkeypatch):
    monkeypatch.setattr(execplugin, "TIME_LIMIT", 0.05)
    with pytest.raises(CredentialsError, match=r"did not answer within 0\.05 s: run it by hand"):
        await exec_credentials("import time\ntime.sleep(60)").identity()


async def test_a_plugin_that_times_out_is_killed_with_its_children(exec_credentials, tmp_path):
    fifo = tmp_path / "held"
    os.mkfifo(fifo)
    plugin_run = asyncio.create_task(
        exec_credentials(f"if not os.fork(): held = open({str(fifo)!r}, 'w')\nimport time\ntime.sleep(20)")._run()
    )
    with await asyncio.to_thread(fifo.open) as read_end:  # returns when the plugin's child has opened it
        plugin_run.cancel()
        done_tasks, _ = await asyncio.wait({plugin_run}, timeout=10)
        assert done_tasks
        assert plugin_run.cancelled()
        # Ends when no process has the other end open.
        assert not await asyncio.wait_for(asyncio.to_thread(read_end.read), 10)


async def test_an_exec_command_is_relative_to_its_kubeconfig(exec_credentials, tmp_path):
    exec_credentials("give(token=os.environ['KUBERNETES_EXEC_INFO'])")
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
