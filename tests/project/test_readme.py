"""Tests that the README agrees with the code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.report.page import format_duration

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def code_block(language):
    (block,) = re.findall(rf"```{language}[^\n]*\n(.*?)```", README, re.DOTALL)
    return block


def fairlead(*args):
    command = [sys.executable, "-m", "fairlead", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.smoke
def test_operator_of_the_readme_runs(tmp_path):
    code = code_block("python")
    assert len(code.strip().splitlines()) <= 15
    (tmp_path / "greeter.py").write_text(code)
    run = ["run", str(tmp_path / "greeter.py"), "--embedded", "--once", "--apply", "docs/examples/greeting.yaml"]
    completed = fairlead(*run)
    assert completed.returncode == 0, completed.stderr


def test_operator_of_the_readme_is_the_example_of_the_docs():
    assert code_block("python").strip() in (ROOT / "docs/examples/greeter.py").read_text()
    assert code_block("yaml").strip() == (ROOT / "docs/examples/greeting.yaml").read_text().strip()


@pytest.mark.timeout(300)  # It plays every demo.
def test_results_equal_a_fresh_run_of_the_demo():
    table = README.partition("<!-- results: fairlead demo --json -->")[2].partition("\n\n")[0]
    rows = [re.sub(r"\[(\w+)\]\(.*?\)", r"\1", line).split(" | ") for line in table.strip().splitlines()[2:]]
    readme_rows = [" | ".join([name, *figures]) for name, _, *figures in rows]  # The second cell is the story.
    assert readme_rows == [
        result_row(*item) for item in json.loads(fairlead("demo", "--json").stdout)["systems"].items()
    ]


def result_row(name, system):
    old, new = system["old"], system["new"]
    rejected_counts = [way["conflicts"] + way["already_exists"] for way in (old, new)]
    seconds = [format_duration(way["seconds_to_done"]["p50"]) for way in (old, new)]
    lost = [way["lost"] + way["stuck"] for way in (old, new)]
    cells = [" → ".join(map(str, pair)) for pair in (rejected_counts, seconds, lost)]
    return f"| {name} | {system['scale']} | {' | '.join(cells)} |"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "operators/README.md"])
def test_every_relative_link_points_to_a_file(page):
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []
