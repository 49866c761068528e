"""Histories that once told the two servers apart, and fresh ones, answered alike by both."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import histories, known, run
from .playing import Both, embedded, settled
from .shrinking import shrink, without

FRESH = 60  # histories: some twenty seconds
CASES = sorted(path.stem for path in run.CASES.glob("*.json"))


@pytest.mark.parametrize("name", CASES)
def test_a_kept_history_is_answered_as_a_real_server_once_did(name):
    scenario, definition = settled(run.read(run.CASES / f"{name}.json"))
    answers = embedded(scenario, definition)
    wanted = [step.get("expect", answer) for step, answer in zip(scenario["steps"], answers, strict=True)]
    found = known.sorted_out(scenario, zip(range(len(answers)), wanted, answers, strict=True))[0]
    assert not found, "\n".join(run.told(one) for one in found[:3])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.only("real", reason="the embedded server plays each history beside it")
async def test_a_history_that_once_told_them_apart_is_answered_alike(api, name):
    scenario = run.read(run.CASES / f"{name}.json")
    found = known.sorted_out(scenario, await Both(api.transport()).play(scenario))[0]
    assert not found, "\n".join(run.told(one) for one in found[:3])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.only("real", reason="the embedded server plays each history beside it")
async def test_fresh_histories_are_answered_alike(api):
    """The same ones every time: `make differential` draws others."""
    report = await run.played(Both(api.transport()), range(FRESH))
    assert not report.ways, "\n".join(f"{way}: {failed[0]['name']}" for way, failed in report.ways.items())


def test_the_documented_differences_are_the_known_ones():
    page = Path(__file__).parents[2] / "docs/explanation/differences.md"
    documented = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    assert documented == list(known.KNOWN)


def test_a_seed_says_everything_about_its_history():
    assert [histories.scenario(seed) for seed in range(40)] == [histories.scenario(seed) for seed in range(40)]


async def test_a_history_that_agreed_is_passed_over_until_it_asks_for_something_else(tmp_path, monkeypatch):
    class Agreeing:
        async def play(self, scenario):
            asked.append(scenario["name"])
            return []

    asked: list[str] = []
    drawn = {"name": "builtin-7", "family": "builtin", "steps": [{"do": "GET", "path": "/version"}]}
    monkeypatch.setattr(histories, "scenario", lambda seed: drawn)
    for steps, times in ((drawn["steps"], 1), (drawn["steps"], 1), ([], 2)):
        drawn["steps"] = steps
        await run.played(Agreeing(), [7], results=run.Results(tmp_path / "results"))
        assert len(asked) == times


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-n", "0"], "argument -n: at least 1"),
        (["--family", "none"], "invalid choice: 'none'"),
        (["-n", "1", "--server", "https://127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["-n", "1"], "etcd and kube-apiserver not found"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_line(arguments, told, tmp_path):
    command = [sys.executable, "-m", "tests.differential.run", *arguments]
    elsewhere = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(tmp_path), "PATH": os.environ["PATH"]}
    if Path("/usr/local/kubebuilder/bin").exists() and "found" in told:
        pytest.skip("a real server is installed for everyone here")
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=elsewhere, capture_output=True, text=True, check=False
    )
    assert ended.returncode in (1, 2)
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_every_family_is_drawn():
    assert {histories.scenario(seed)["family"] for seed in range(300)} == set(histories.FAMILIES)


def test_a_step_goes_with_the_steps_that_refer_to_it():
    steps = [{"do": "GET"}, {"do": "GET"}, {"do": "PUT", "body": {"$set": {"from": "1"}}}, {"do": "GET", "x": "${1.a}"}]
    assert without({"steps": steps}, {0}) == {
        "steps": [{"do": "GET"}, {"do": "PUT", "body": {"$set": {"from": "0"}}}, {"do": "GET", "x": "${0.a}"}]
    }
    assert without({"steps": steps}, {1}) == {"steps": [{"do": "GET"}]}


async def test_a_failing_history_is_made_small():
    steps = [{"do": "POST", "body": {"a": index, "b": [1, 2, {"c": 3}]}} for index in range(9)]

    async def fails(scenario):
        return any(step["body"].get("a") == 5 and {"c": 3} in step["body"].get("b", ()) for step in scenario["steps"])

    assert await shrink({"steps": steps}, fails) == {"steps": [{"do": "POST", "body": {"a": 5, "b": [{"c": 3}]}}]}
