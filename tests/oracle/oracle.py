"""The Go oracle: built once a content, when Go is there."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCES = ("main.go", "go.mod", "go.sum")


def binary() -> Path | str:
    """The oracle's path, or why there is none."""
    content = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairlead" / "oracle"
    made = cache / content
    if made.exists():
        return made
    go = shutil.which("go")
    if go is None:
        return "the oracle needs Go to be built"
    cache.mkdir(parents=True, exist_ok=True)
    part = cache / f"{content}.{os.getpid()}"
    built = subprocess.run([go, "build", "-o", str(part), "."], cwd=HERE, capture_output=True, text=True, timeout=110)
    if built.returncode:
        return f"the oracle could not be built: {built.stderr.strip()[-500:]}"
    part.rename(made)
    return made


class Oracle:
    """A running oracle."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def play(self, history: dict[str, Any]) -> list[dict[str, Any]]:
        """What a real server's field manager makes of each write."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(history).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the oracle ended: play this history to it by hand to see why"
        return json.loads(answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()
