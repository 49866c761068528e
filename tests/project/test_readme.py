"""What the README shows is so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return found


def fairlead(*args):
    command = [sys.executable, "-m", "fairlead", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.smoke
def test_its_operator_runs(tmp_path):
    code = block("python")
    assert len(code.strip().splitlines()) <= 15
    (tmp_path / "greeter.py").write_text(code)
    run = ["run", str(tmp_path / "greeter.py"), "--embedded", "--once", "--apply", "docs/examples/greeting.yaml"]
    answer = fairlead(*run)
    assert answer.returncode == 0, answer.stderr


def test_its_operator_is_the_example_of_the_docs():
    example = (ROOT / "docs/examples/greeter.py").read_text()
    assert block("python").strip() in example


def figures(table):
    rows = re.findall(r"^ +(old|new) +(\d.*)$", table, re.MULTILINE)
    return [(way, [float(n) for n in re.findall(r"[0-9.]+", cells)]) for way, cells in rows]


@pytest.mark.smoke
def test_its_table_is_what_the_demo_prints():
    """Zeros exactly, the rest roughly: a change anywhere draws other numbers from the same seed."""
    shown = figures(README.partition("<!-- fairlead demo -->")[2].partition("The stories")[0])[:2]
    printed = figures(fairlead("demo", "httpproxy").stdout)
    assert [way for way, _ in shown] == [way for way, _ in printed] == ["old", "new"]
    for (_, said), (_, measured) in zip(shown, printed, strict=True):
        for one, other in zip(said, measured, strict=True):
            assert one == other == 0 or one / 10 <= other <= one * 10, (said, measured)


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "operators/httpproxy/README.md", "operators/seinode/README.md"]
)
def test_each_link_into_the_repository_leads_somewhere(page):
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []
