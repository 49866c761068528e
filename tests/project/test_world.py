"""Tests that only the World reads the clock and random values. All other code gets them from a World."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "fairlead"
FORBIDDEN = {"time", "random", "uuid", "secrets"}
ALLOWED = {SRC / "api" / "world.py"}


def clock_readers(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"import {a.name}" for a in node.names if a.name.split(".")[0] in FORBIDDEN)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] in FORBIDDEN:
            yield f"from {node.module} import …"
        elif isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}:
            if isinstance(node.value, ast.Name) and node.value.id in {"datetime", "date"}:
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Attribute) and node.attr == "urandom":
            yield "os.urandom"


@pytest.mark.smoke
def test_only_the_world_reads_time_and_randomness():
    violations = {
        str(path.relative_to(SRC)): readers
        for path in sorted(SRC.rglob("*.py"))
        if path not in ALLOWED and (readers := list(clock_readers(ast.parse(path.read_text()))))
    }
    assert not violations, f"use a World to read time or randomness: {violations}"


@pytest.mark.parametrize(
    "code",
    ["import time", "from random import choice", "import uuid", "datetime.now()", "os.urandom(4)", "import secrets"],
)
def test_check_detects_every_way_to_read_time_or_randomness(code):
    assert list(clock_readers(ast.parse(code)))
