"""Tests that every code block of the documentation runs, and that every page is reachable."""

import sys
from pathlib import Path

import pytest
import yaml
from doc_pages import PageRunner, blocks_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "operators").rglob("README.md"))]
WITH_CODE = [page for page in PAGES if blocks_of(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_code_block_of_a_page_runs(page, tmp_path):
    with PageRunner(page, tmp_path, Path(sys.executable).parent) as runner:
        for block in blocks_of(page):
            runner.run(block)


def nav_pages(entries):
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, list):
                yield from nav_pages(value)
            else:
                yield value


def test_every_page_is_in_the_navigation_or_linked_from_an_index():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = set(nav_pages(config["nav"]))
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        index = page.parent / "index.md"
        assert name in listed or f"({page.name})" in index.read_text(), f"{name} is not reachable"
