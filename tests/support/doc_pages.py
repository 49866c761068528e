"""Run the code blocks of a documentation page, in order, in a directory of their own.

- A block with a title (```python title="controller.py") is written to that file.
- A `python` block without a title is executed. The blocks of one page share their variables, and `await` works.
- A `console` block: each line that starts with `$ ` is run by bash, and the lines after it are its expected output.
  `...` alone on a line stands for any number of lines, and inside a line for any text. A command that ends in ` &`
  runs until the page ends; its output is not compared. `# exit status 1` after a command expects that status.
- `yaml`, `json` and `toml` blocks are parsed. `go` blocks are checked with gofmt where it is installed.
- `text` blocks are not code. Any other language is an error, so that no block goes unchecked.
"""

import ast
import asyncio
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from fairlead.testing.real import cache_folder

BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<options>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
TITLE = re.compile(r'title="([^"]+)"')
TIMEOUT = 60.0


@dataclass
class Block:
    language: str
    title: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    markdown = page.read_text(encoding="utf-8")
    blocks = []
    for match in BLOCK.finditer(markdown):
        title = TITLE.search(match["options"])
        line = markdown.count("\n", 0, match.start()) + 1
        blocks.append(Block(match["language"], title[1] if title else "", textwrap.dedent(match["text"]), line))
    return blocks


class PageRunner:
    """Runs the code blocks of one page. As a context manager, it stops the background commands at the end."""

    def __init__(self, page: Path, folder: Path, bin_folder: Path) -> None:
        self._page, self._folder = page, folder
        self._variables: dict[str, object] = {"__name__": "__docs__"}
        self._background: list[subprocess.Popen[bytes]] = []
        home = folder / ".home"
        home.mkdir()
        path = os.pathsep.join([str(bin_folder), str(cache_folder()), os.environ["PATH"]])
        kept_environment = {name: os.environ[name] for name in ("PYTHONPATH", "LANG", "TMPDIR") if name in os.environ}
        plugins = "-p no:asyncio"  # A reader's environment does not have pytest-asyncio, and it warns without settings.
        self._environment = {
            **kept_environment,
            "PATH": path,
            "HOME": str(home),
            "COLUMNS": "80",
            "PYTEST_ADDOPTS": plugins,
        }

    def __enter__(self) -> "PageRunner":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._background:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self._background:
            process.communicate(timeout=20)  # Reads to the end and closes the pipe.

    def run(self, block: Block) -> None:
        location = f"{self._page.name}, line {block.line}"
        if block.title:
            path = self._folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        match block.language:
            case "python" if not block.title:
                self._run_python(block, location)
            case "python":
                ast.parse(block.text, location)
            case "console":
                self._run_console(block.text, location)
            case "yaml":
                list(yaml.safe_load_all(block.text))
            case "json":
                json.loads(block.text)
            case "toml":
                tomllib.loads(block.text)
            case "go":
                _check_go(block.text, location)
            case "text" | "mermaid":
                pass
            case _:
                raise AssertionError(f"{location}: no rule runs a block of language {block.language!r}")

    def _run_python(self, block: Block, location: str) -> None:
        code = compile(block.text, location, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, self._variables)
        if inspect.iscoroutine(result):
            asyncio.run(result)

    def _run_console(self, session: str, location: str) -> None:
        if "kubectl" in session and shutil.which("kubectl", path=self._environment["PATH"]) is None:
            pytest.skip(f"{location}: needs kubectl, which `make real` builds")
        for command, expected in _commands(session):
            status = re.search(r"# exit status (\d+)$", command)
            if command.endswith(" &"):
                self._start(command.removesuffix(" &"))
                continue
            completed = subprocess.run(
                ["bash", "-c", command],
                cwd=self._folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT,
                check=False,
                text=True,
            )
            expected_status = int(status[1]) if status else 0
            assert completed.returncode == expected_status, (
                f"{location}: {command}: exit status {completed.returncode}\n{completed.stdout}"
            )
            if expected:
                assert _matches(expected, completed.stdout), (
                    f"{location}: {command} printed\n{completed.stdout}\nnot\n{expected}"
                )

    def _start(self, command: str) -> None:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._background.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()  # The first line says that the command is up.
        assert process.poll() is None, f"{command} ended: {line!r}"


def _commands(session: str) -> list[tuple[str, str]]:
    commands: list[tuple[str, str]] = []
    for line in session.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], ""))
        elif commands and commands[-1][0].endswith("\\"):
            commands[-1] = (f"{commands[-1][0]}\n{line.removeprefix('> ')}", "")
        elif commands:
            commands[-1] = (commands[-1][0], f"{commands[-1][1]}{line}\n")
        else:
            raise AssertionError(f"a console block starts with a command, not with {line!r}")
    return commands


def _matches(expected: str, printed: str) -> bool:
    lines = [
        "(?:.*\n)*?" if line.strip() == "..." else f"{_line_pattern(line)}\\s*\n" for line in expected.splitlines()
    ]
    text = printed if printed.endswith("\n") else f"{printed}\n"
    return re.fullmatch("".join(lines), text) is not None


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("..."))


def _check_go(text: str, location: str) -> None:
    if gofmt := shutil.which("gofmt"):
        source = text if text.lstrip().startswith("package ") else f"package p\n\nfunc _() {{\n{text}\n}}\n"
        completed = subprocess.run([gofmt, "-e"], input=source, capture_output=True, text=True, check=False)
        if completed.returncode and not text.lstrip().startswith("package "):  # Declarations are not statements.
            completed = subprocess.run(
                [gofmt, "-e"], input=f"package p\n\n{text}", capture_output=True, text=True, check=False
            )
        assert completed.returncode == 0, f"{location}: {completed.stderr}"
