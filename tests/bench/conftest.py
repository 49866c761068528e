"""The benchmark's own modules, with folders of their own for results and for the page."""

import shutil
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def results(monkeypatch, tmp_path):
    """The folder where results go; bench/ can be imported from meanwhile."""
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
    """A copy of the page, made of a copy of what was measured."""
    import report

    shutil.copytree(BENCH / "results", results)
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(report, "PLOTS", tmp_path / "benchmarks")
    shutil.copy(BENCH.parent / "docs/benchmarks.md", report.PAGE)
    return report.PAGE
