"""`fairlead serve --data` at the terminal."""

import os
import subprocess
import sys

from fairlead.server.app import Server


def serve(folder):
    return subprocess.run(
        [sys.executable, "-m", "fairlead", "serve", "--no-tls", "--data", str(folder)],
        capture_output=True, text=True, timeout=30, env={**os.environ, "FAIRLEAD_TOKEN": "t"},
    )  # fmt: skip


def test_what_is_wrong_with_a_directory_is_one_line(tmp_path):
    holding = Server(data=tmp_path / "held")
    try:
        ended = serve(tmp_path / "held")
    finally:
        holding.close()
    assert (ended.returncode, ended.stdout) == (2, "")
    held = f"another server holds {tmp_path / 'held'}: stop it, or give another directory"
    assert ended.stderr == f"fairlead: {held}\n"
    (tmp_path / "held" / "state.db").write_bytes(b"not ours")
    ended = serve(tmp_path / "held")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert "not fairlead's" in ended.stderr
    assert (tmp_path / "held" / "state.db").read_bytes() == b"not ours"
