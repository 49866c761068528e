"""Tests that the table has a row with the reason for a program that cannot be run."""

import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(results):
    import work

    import report

    return work, report


def saved(path):
    return json.loads((path / "work.json").read_text())["rows"]["embedded"]


def test_peer_without_a_compiler_is_listed_with_the_reason(bench, monkeypatch, tmp_path):
    work, _ = bench
    monkeypatch.setattr(work.shutil, "which", lambda tool: None)
    monkeypatch.setattr(work, "BUILT", tmp_path / "built")
    monkeypatch.setattr(work, "PEERS_BIN", tmp_path / "peers")
    chosen, absent = work.programs(("",))
    assert list(chosen) == ["fairlead"]
    assert absent == {
        "cloudcoil": work.CLOUDCOIL,
        "controller-runtime, CreateOrUpdate": "there is no go here",
        "controller-runtime, apply": "there is no go here",
        "kube-rs, apply": "there is no cargo here",
        "kopf, lightkube's apply": "`make bench-peers` was not run",
    }


def test_peer_that_does_not_start_gets_a_row_and_the_others_run(bench, results, monkeypatch):
    work, _ = bench
    broken = lambda namespace: [sys.executable, "-c", "raise SystemExit(3)"]  # noqa: E731
    monkeypatch.setattr(work, "programs", lambda selected: ({"broken": broken, "broken too": broken}, {"gone": "why"}))
    monkeypatch.setattr(sys, "argv", ["work.py", "--server", "embedded", "--save", "--pages", "1"])
    work.main()
    reason = "ChildProcessError it ended with 3 before it watched anything"
    assert saved(results) == {"gone": {"absent": "why"}, "broken": {"failed": reason}, "broken too": {"failed": reason}}


def test_table_says_why_a_peer_has_no_figures(bench):
    _, report = bench
    result = json.loads((BENCH / "results/work.json").read_text())
    result["rows"]["real"] = {
        "fairlead": result["rows"]["real"]["fairlead"],
        "kube-rs, apply": {"failed": "TimeoutError"},
        "cloudcoil": {"absent": "no such Python"},
    }
    lines = report.peer_controllers(result).splitlines()
    assert "| kube-rs, apply | failed: TimeoutError |  |  |  |  |  |  |  |  |" in lines
    assert "| cloudcoil | not run: no such Python |  |  |  |  |  |  |  |  |" in lines


def test_incomplete_audit_log_line_is_read_when_complete(bench, tmp_path):
    work, _ = bench
    event = {"userAgent": "x", "objectRef": {"resource": "pages"}, "responseStatus": {"code": 200}}
    line = json.dumps({**event, "verb": "get", "stage": "ResponseComplete"}) + "\n"
    log = tmp_path / "audit.log"
    log.write_text(line + line[:30])
    audit = work.Audit(log)
    assert audit.read() == {("get", 200): 1}
    with log.open("a") as file:
        file.write(line[30:])
    assert audit.read() == {("get", 200): 2}
    audit.close()
