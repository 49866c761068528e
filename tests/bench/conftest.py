"""Fixtures that import the benchmark's modules and redirect its results and page to temporary folders."""

import shutil
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def results(monkeypatch, tmp_path):
    """Return a temporary results folder. Modules of bench/ can be imported during the test."""
    monkeypatch.syspath_prepend(str(BENCH))
    before = set(sys.modules)
    from support import recording

    monkeypatch.setattr(recording, "RESULTS", tmp_path / "results")
    yield recording.RESULTS
    for name in set(sys.modules) - before:
        if str(BENCH) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def page(results, monkeypatch, tmp_path):
    """Return a copy of the page, with a copy of the results."""
    import report

    shutil.copytree(BENCH / "results", results)
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(report, "PLOTS", tmp_path / "benchmarks")
    shutil.copy(BENCH.parent / "docs/benchmarks.md", report.PAGE)
    return report.PAGE
