"""Build and run Go programs that call Kubernetes' own code. A program is built again only if its source changes."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

SOURCES = ("main.go", "go.mod", "go.sum")


def binary(folder: Path) -> Path | str:
    """Build the program in a folder. Return its path, or the reason why it cannot be built."""
    content = hashlib.sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairlead" / "oracle"
    binary_path = cache / content
    if binary_path.exists():
        return binary_path
    go_command = shutil.which("go")
    if go_command is None:
        return "the oracle needs Go to be built"
    cache.mkdir(parents=True, exist_ok=True)
    unfinished_build = cache / f"{content}.{os.getpid()}"
    command = [go_command, "build", "-o", str(unfinished_build), "."]
    try:
        built = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110)
    except subprocess.TimeoutExpired:
        return f"building it takes long the first time: run `go build -o /dev/null .` in {folder} once"
    if built.returncode:
        return f"the oracle could not be built: {built.stderr.strip()[-500:]}"
    unfinished_build.rename(binary_path)
    return binary_path


class Oracle:
    """A running Go program that reads questions and writes answers, one line of JSON each."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the oracle ended: ask it this by hand to see why"
        return json.loads(answer.decode("utf-8", "replace"))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()
