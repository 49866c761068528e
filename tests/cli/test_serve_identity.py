"""Tests of `fairlead serve` with a token file, RBAC and an audit log."""

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import pytest


def serve(*options, **environment):
    command = [sys.executable, "-m", "fairlead", "serve", *map(str, options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def code(url, context, path, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), context=context) as response:
            return response.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_users_of_a_token_file_are_authorized_and_audited(tmp_path):
    tokens, config, log = tmp_path / "tokens.csv", tmp_path / "config", tmp_path / "audit.log"
    tokens.write_text('root,root,1,system:masters\njane,jane,2,"dev,ops"\n')
    options = [
        "--token-file",
        tokens,
        "--authorization-mode=RBAC",
        "--audit-log-path",
        log,
        "--write-kubeconfig",
        config,
    ]
    with serve(*options, FAIRLEAD_TOKEN="from-the-environment") as process:
        try:
            process.stdout.readline()
            url = process.stdout.readline().removeprefix("serving on ").strip()
            cluster = json.loads(config.read_text())["clusters"][0]["cluster"]
            ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
            context = ssl.create_default_context(cadata=ca)
            codes = {token: code(url, context, "/api/v1/secrets", token) for token in ("root", "jane", "joe", None)}
            assert codes == {"root": 200, "jane": 403, "joe": 401, None: 403}
            assert code(url, context, "/api/v1/secrets", "from-the-environment") == 200
            assert code(url, context, "/healthz") == 200
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    users = [json.loads(line)["user"].get("username") for line in log.read_text().splitlines()]
    assert users == ["root", "jane", None, "system:anonymous", "admin", "system:anonymous"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--token-file", "TOKENS"], "line 1 should be"),
        (["--audit-log-path", "none/audit.log"], "name a file in a folder"),
        (["--client-ca-file", "TOKENS"], "is not a certificate authority"),
        (["--authorization-mode", "ABAC"], "'AlwaysAllow', 'RBAC'"),
    ],
)
def test_bad_option_is_one_line_with_the_fix(tmp_path, options, message):
    bad = tmp_path / "tokens.csv"
    bad.write_text("token,user\n")
    command = [
        sys.executable,
        "-m",
        "fairlead",
        "serve",
        *[str(bad) if argument == "TOKENS" else argument for argument in options],
    ]
    completed = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60)
    assert completed.returncode == 2
    assert message in completed.stderr
    assert "Traceback" not in completed.stderr
