"""Tests of `fairlead demo`: its figures, its JSON and its page."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.api.history import REQUEST, Record
from fairlead.report import page
from fairlead.testing.demo.demo_run import resource_of
from fairlead.testing.demo.outcomes import Outcome, demo_modules, load_demo

DEMO = [sys.executable, "-m", "fairlead", "demo"]
PAGE = (Path(__file__).parents[2] / "docs" / "demo.md").read_text()


@pytest.mark.parametrize("system", ["httpproxy", "seinode", "projects"])
def test_json_figures_are_complete_and_consistent(system, tmp_path):
    command = [*DEMO, system, "--scale", "2", "--json", "--report", str(tmp_path)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(completed.stdout)["systems"][system]
    assert result["scale"] == 2
    for variant in ("old", "new"):
        figures = result[variant]
        assert figures["requests"] == sum(row["count"] for row in figures["by_verb"])
        rejected_counts = {True: 0, False: 0}
        for row in figures["by_verb"]:
            if row["code"] == 409:
                rejected_counts[row["verb"] == "POST"] += row["count"]
        assert (figures["already_exists"], figures["conflicts"]) == (rejected_counts[True], rejected_counts[False])
        times = figures["seconds_to_done"]
        assert times["p50"] <= times["p99"] <= times["last"]
        assert figures["watch_events"] > 0
    assert {result["new"][key] for key in ("conflicts", "already_exists", "lost", "stuck")} == {0}
    assert result["old"]["conflicts"] + result["old"]["already_exists"] > 0
    page_html = (tmp_path / "index.html").read_text()
    assert page_html.count("<svg") == 2
    assert not re.search(r"https?://|<script|url\(", page_html)


def test_page_escapes_text_from_objects():
    evil = "<script>alert(1)</script>"
    outcome = Outcome({}, [], 0, [evil], [evil], [Record(REQUEST, 0.1, evil, "PUT", path=evil, outcome="409")])
    page_html = page.render({evil: (1, {"old": outcome})})
    assert "<script" not in page_html
    assert page_html.count("&lt;script&gt;") >= 5


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/namespaces/a/pods/b", "pods"),
        ("/api/v1/namespaces/a", "namespaces"),
        ("/apis/g/v1/namespaces/a/things/b/status", "things/status"),
        ("/apis/g/v1/things", "things"),
        ("/api/v1/namespaces/a/status", "namespaces/status"),
    ],
)
def test_resource_of_a_path_matches_the_server_metrics(path, resource):
    assert resource_of(path) == resource


def test_five_demos_are_installed():
    assert list(demo_modules()) == ["httpproxy", "seinode", "projects", "pulsar", "orphans"]
    assert all(hasattr(load_demo(system), "play") for system in demo_modules())


@pytest.mark.parametrize(
    ("seconds", "expected"), [(None, "never"), (0.5, "0.50s"), (59.999, "1m00s"), (299.9, "5m00s"), (1001.0, "16m41s")]
)
def test_durations_of_a_minute_and_more_are_in_minutes(seconds, expected):
    assert page.format_duration(seconds) == expected


def test_page_shows_the_output_of_the_demo():
    output = PAGE.partition("<!-- fairlead demo -->\n```text\n")[2].partition("\n```\n")[0]
    completed = subprocess.run([*DEMO, "pulsar", "orphans"], capture_output=True, text=True, check=True)
    assert output.endswith(completed.stdout.rstrip())
