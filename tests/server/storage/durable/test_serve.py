"""Tests of the errors of `fairlead serve --data`."""

import os
import subprocess
import sys

from fairlead.server.app import Server


def serve(folder):
    return subprocess.run(
        [sys.executable, "-m", "fairlead", "serve", "--no-tls", "--data", str(folder)],
        capture_output=True, text=True, timeout=30, env={**os.environ, "FAIRLEAD_TOKEN": "t"},
    )  # fmt: skip


def test_unusable_directory_is_reported_in_one_line(tmp_path):
    server = Server(data=tmp_path / "data")
    try:
        result = serve(tmp_path / "data")
    finally:
        server.close()
    assert (result.returncode, result.stdout) == (2, "")
    message = f"another server uses {tmp_path / 'data'}: stop it, or use another directory"
    assert result.stderr == f"fairlead: {message}\n"
    (tmp_path / "data" / "state.db").write_bytes(b"not ours")
    result = serve(tmp_path / "data")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "not a database of fairlead" in result.stderr
    assert (tmp_path / "data" / "state.db").read_bytes() == b"not ours"
