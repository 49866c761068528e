"""Find the source files of a tree, and say in one line what is left out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED_FOLDERS = frozenset(
    [
        "vendor",
        "third_party",
        "node_modules",
        "testdata",
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        "__pycache__",
        "site-packages",
        ".tox",
        "_output",
    ]
)
GENERATED_NAMES = re.compile(
    r"(^zz_generated|\.pb\.go$|\.pb\.gw\.go$|_generated\.go$|^generated\.|mock_.*\.go$|_mock\.go$)"
)
MAX_BYTES = 2_000_000
"""Larger files are generated: no person reads a finding in them."""
MODULE = re.compile(r"(?m)^module\s+\"?([^\s\"]+)")


@dataclass(slots=True)
class SourceFiles:
    """Files relative to the root, with /, in order."""

    go: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    modules: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find_sources(root: Path) -> SourceFiles:
    """Return the files to lint. Symbolic links are not followed, so a loop cannot happen."""
    found = SourceFiles()
    vendored = links = 0
    for folder, folders, names in os.walk(root, followlinks=False):
        relative = os.path.relpath(folder, root).replace(os.sep, "/")
        relative = "" if relative == "." else relative
        for name in sorted(folders):
            if (Path(folder) / name).is_symlink():
                links += 1
            elif name in ("vendor", "third_party"):
                vendored += 1
        folders[:] = sorted(
            name for name in folders if name not in SKIPPED_FOLDERS and not (Path(folder) / name).is_symlink()
        )
        for name in sorted(names):
            path = f"{relative}/{name}" if relative else name
            if name == "go.mod":
                text = (Path(folder) / name).read_text(encoding="utf-8", errors="replace")
                match = MODULE.search(text)
                if match:
                    found.modules[relative] = match.group(1)
            elif name.endswith(".go") and not name.endswith("_test.go"):
                _add_go(found, root, path, name)
            elif name.endswith(".py") and not name.startswith("test_"):
                found.python.append(path)
    if vendored:
        found.notes.append(f"{vendored} vendored folders were not linted")
    if links:
        found.notes.append(f"{links} symbolic links to folders were not followed")
    return found


def _add_go(found: SourceFiles, root: Path, path: str, name: str) -> None:
    full = root / path
    if GENERATED_NAMES.search(name):
        return
    if full.is_symlink():
        return
    try:
        size = full.stat().st_size
    except OSError:
        return
    if size > MAX_BYTES:
        found.notes.append(f"{path}: skipped, {size / 1e6:.1f} MB are more than a person writes in one file")
        return
    found.go.append(path)
