"""Tests that the number of processes does not change the report, and that progress is shown on a terminal only."""

import os
import re
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.api.errors import UserError
from fairlead.cli.lint import command, show_progress
from fairlead.tools.lint import parallel
from fairlead.tools.lint.engine import lint

SHOP = Path(__file__).parent / "shop"
OPERATOR = """import kubernetes

def finish(api, name):
    order = api.get_namespaced_custom_object("a", "v1", "ns", "orders", name)
    left = [item for item in order["metadata"]["finalizers"] if item != "ours"]
    api.patch_namespaced_custom_object("a", "v1", "ns", "orders", name, {"metadata": {"finalizers": left}})
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Create a Go module with eight copies of a small operator, and Python modules; read even few files in parallel."""
    monkeypatch.setattr(parallel, "MIN_FILES", 2)
    monkeypatch.setattr(parallel, "FILES_AT_ONCE", 3)
    for source in SHOP.rglob("*"):
        if source.is_file():
            for number in range(8):
                target = tmp_path / f"shop{number}" / source.relative_to(SHOP)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
    for number in range(8):
        (tmp_path / f"operator{number}.py").write_text(OPERATOR)
    (tmp_path / "broken.go").write_text("package shop\nfunc {{{ broken\n")
    (tmp_path / "broken.py").write_text("def broken(:\n")
    return tmp_path


def test_findings_and_notes_do_not_depend_on_the_number_of_processes(tree):
    one, three = lint(tree, ("all",)), lint(tree, ("all",), jobs=3)
    assert len(one.findings) > 100
    assert {Path(finding.file).suffix for finding in one.findings} == {".go", ".py"}
    assert [finding.to_json() for finding in three.findings] == [finding.to_json() for finding in one.findings]
    assert (three.notes, three.files, three.lines) == (one.notes, one.files, one.lines)


def test_many_files_are_read_in_other_processes_in_order(monkeypatch):
    monkeypatch.setattr(parallel, "MIN_FILES", 2)
    paths = [str(number) for number in range(200)]
    results = list(parallel.map_files(path_and_process, paths, 2))
    assert [path for path, _ in results] == paths
    assert os.getpid() not in {process for _, process in results}


def path_and_process(path):
    return path, os.getpid()


def test_few_files_are_read_in_this_process():
    assert list(parallel.map_files(path_and_process, ["a"], 8)) == [("a", os.getpid())]


def test_a_process_that_ends_early_is_a_clear_error(monkeypatch):
    monkeypatch.setattr(parallel, "MIN_FILES", 2)
    with pytest.raises(UserError, match="--jobs 1") as error:
        list(parallel.map_files(end_the_process, ["a", "b"], 2))
    assert isinstance(error.value.__cause__, BrokenProcessPool)


def end_the_process(_path):
    os._exit(3)


def test_progress_counts_files_and_functions(tree):
    seen = []
    lint(tree, progress=lambda what, done, total: seen.append((what, done, total)))
    for what in ("Go files", "functions", "Python files"):
        steps = [(done, total) for name, done, total in seen if name == what]
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1]


def test_progress_overwrites_its_line_and_removes_it_at_the_end(capsys):
    show_progress("Go files", 100, 300)
    show_progress("Go files", 300, 300)
    assert re.sub(r"\x1b\[K", "", capsys.readouterr().err) == "\r100 of 300 Go files\r"


def test_without_a_terminal_there_is_no_progress(tree):
    result = CliRunner().invoke(command, [str(tree), "--jobs", "2"])
    assert result.exit_code == 1
    assert "Go files" not in result.stderr
