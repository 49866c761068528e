"""Tests that both servers give the same responses to recorded differences and to new random histories."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import documented_differences, histories, run
from .documented_differences import find_undocumented
from .servers import ServerPair, play_embedded, resolve_definition
from .shrinking import remove_steps, shrink

RANDOM_HISTORIES = 60  # They take about twenty seconds.
CASES = sorted(path.stem for path in run.CASES.glob("*.jsonl"))


@pytest.mark.parametrize("name", CASES)
def test_responses_equal_the_recorded_ones_of_a_real_server(name):
    scenario, definition = resolve_definition(run.read_case(run.CASES / f"{name}.jsonl"))
    responses = play_embedded(scenario, definition)
    recorded = [step.get("expect", response) for step, response in zip(scenario["steps"], responses, strict=True)]
    differences = find_undocumented(scenario, zip(range(len(responses)), recorded, responses, strict=True))[0]
    assert not differences, "\n".join(map(run.format_difference, differences[:3]))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.only("real", reason="it also plays each history on an embedded server")
async def test_both_servers_give_the_same_responses_to_a_recorded_history(api, name):
    scenario = run.read_case(run.CASES / f"{name}.jsonl")
    differences = find_undocumented(scenario, await ServerPair(api.transport()).play(scenario))[0]
    assert not differences, "\n".join(map(run.format_difference, differences[:3]))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.only("real", reason="it also plays each history on an embedded server")
async def test_both_servers_give_the_same_responses_to_random_histories(api):
    """Tests the same random histories in every run. `make differential SEED=N` plays others."""
    report = await run.play_histories(ServerPair(api.transport()), range(RANDOM_HISTORIES))
    differences = report.by_signature.items()
    assert not differences, "\n".join(
        f"{signature}: {failed_scenarios[0]['name']}" for signature, failed_scenarios in differences
    )


def test_documentation_lists_the_recognized_differences():
    page = Path(__file__).parents[2] / "docs/explanation/differences.md"
    documented = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    assert documented == list(documented_differences.RECOGNIZERS)


def test_history_depends_only_on_its_seed():
    first, second = ([histories.generate_scenario(seed) for seed in range(40)] for _ in range(2))
    assert first == second


async def test_passed_history_is_skipped_until_its_content_changes(tmp_path, monkeypatch):
    class EqualServers:
        async def play(self, scenario):
            played.append(scenario["name"])
            return []

    played: list[str] = []
    scenario = {"name": "builtin-7", "family": "builtin", "steps": [{"do": "GET", "path": "/version"}]}
    monkeypatch.setattr(histories, "generate_scenario", lambda seed: scenario)
    for steps, count in ((scenario["steps"], 1), (scenario["steps"], 1), ([], 2)):
        scenario["steps"] = steps
        await run.play_histories(EqualServers(), [7], results=run.ResultsFile(tmp_path / "results"))
        assert len(played) == count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0"], "argument -n: at least 1"),
        (["--family", "none"], "invalid choice: 'none'"),
        (["-n", "1", "--server", "https://127.0.0.1:1"], "cannot connect to 127.0.0.1:1"),
        (["-n", "1"], "etcd and kube-apiserver not found"),
    ],
)
def test_unusable_arguments_are_reported_without_a_traceback(arguments, message, tmp_path):
    command = [sys.executable, "-m", "tests.differential.run", *arguments]
    environment = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(tmp_path), "PATH": os.environ["PATH"]}
    if Path("/usr/local/kubebuilder/bin").exists() and "found" in message:
        pytest.skip("a real server is installed on this machine")
    result = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_random_histories_include_every_family():
    assert {histories.generate_scenario(seed)["family"] for seed in range(300)} == set(histories.FAMILIES)


def test_removing_a_step_removes_the_steps_that_refer_to_it():
    steps = [{"do": "GET"}, {"do": "GET"}, {"do": "PUT", "body": {"$set": {"from": "1"}}}, {"do": "GET", "x": "${1.a}"}]
    assert remove_steps({"steps": steps}, {0}) == {
        "steps": [{"do": "GET"}, {"do": "PUT", "body": {"$set": {"from": "0"}}}, {"do": "GET", "x": "${0.a}"}]
    }
    assert remove_steps({"steps": steps}, {1}) == {"steps": [{"do": "GET"}]}


async def test_shrink_removes_irrelevant_steps_and_fields():
    steps = [{"do": "POST", "body": {"a": index, "b": [1, 2, {"c": 3}]}} for index in range(9)]

    async def fails(scenario):
        return any(step["body"].get("a") == 5 and {"c": 3} in step["body"].get("b", ()) for step in scenario["steps"])

    assert await shrink({"steps": steps}, fails) == {"steps": [{"do": "POST", "body": {"a": 5, "b": [{"c": 3}]}}]}
