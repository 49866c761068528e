"""Every pair of options of `fairlead run` either works, or is rejected with a sentence that names the remedy."""

import asyncio
import itertools
import sys

import pytest
from click.testing import CliRunner

from fairlead.api.files import write_private
from fairlead.api.world import World
from fairlead.cli import run as run_module
from fairlead.cli.serve import kubeconfig_text
from fairlead.client.client import Client
from fairlead.runtime.definitions import install_missing
from fairlead.server.app import Server

# A valid value of each option that takes one; 3 for all others. `FILE` is a file that exists.
VALUES = {
    "--namespace": "default",
    "--kubeconfig": "FILE",
    "--context": "c",
    "--cluster": "a=b",
    "--apply": "FILE",
    "--health": "8080",
    "--log-format": "json",
    "--log-level": "debug",
    "--ui": "8095",
    "--ui-allow-host": "operator.example.com",
}
NEEDED = {"--ui-allow-host": ["--ui", "8095"], "--apply": ["--embedded"], "--fail-on-change": ["--dry-run", "--once"]}


def uses():
    """Return the arguments of one valid use of each option, by its long name."""
    arguments = {}
    for option in run_module.run.params:
        if option.param_type_name == "option":
            name = max(option.opts, key=len)
            values = [] if option.is_flag or option.count else [VALUES.get(name, "3")]
            arguments[name] = [*NEEDED.get(name, []), name, *values]
    return arguments


REJECTED = {
    ("--namespace", "--all-namespaces"): "use one of them",
    ("--kubeconfig", "--embedded"): "leave out --kubeconfig",
    ("--kubeconfig", "--apply"): "leave out --kubeconfig",
    ("--context", "--embedded"): "leave out --context",
    ("--context", "--apply"): "leave out --context",
    ("--cluster", "--embedded"): "leave out --cluster",
    ("--cluster", "--apply"): "leave out --cluster",
    ("--dev", "--once"): "use one of them",
    ("--dev", "--fail-on-change"): "use one of them",
    ("--dry-run", "--leader-elect"): "leave out --leader-elect",
    ("--fail-on-change", "--leader-elect"): "leave out --leader-elect",
    ("--once", "--leader-elect"): "leave out --leader-elect",
}


@pytest.fixture
def invoke(monkeypatch, tmp_path):
    """Return a function that calls `fairlead run` up to the point where it would connect."""

    async def succeed(*args, **options):
        return 0

    monkeypatch.setattr(run_module, "_run", succeed)
    monkeypatch.setattr(run_module.signals, "run", lambda work, watchdog: asyncio.run(work))
    monkeypatch.setattr(run_module.logs, "configure", lambda *args, **options: None)
    file = tmp_path / "file"
    file.write_text("{}")

    def invoke(*arguments):
        arguments = [str(file) if argument == "FILE" else argument for argument in arguments]
        return CliRunner().invoke(run_module.run, ["operator.py", *arguments])

    return invoke


def test_every_pair_of_options_works_or_names_the_remedy(invoke):
    rejected_pairs = {}
    arguments = uses()
    for first, second in itertools.combinations(arguments, 2):
        completed = invoke(*arguments[first], *arguments[second])
        if completed.exit_code:
            assert completed.exit_code == 2, (first, second, completed.output)
            rejected_pairs[first, second] = completed.output
    assert rejected_pairs.keys() == REJECTED.keys()
    for pair, remedy in REJECTED.items():
        assert remedy in rejected_pairs[pair]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--apply", "FILE"], "--apply works only with --embedded: on a cluster use kubectl apply -f"),
        (["--fail-on-change"], "--fail-on-change works only with --dry-run and --once: add both"),
        (["-n", "a,b"], "'a,b' is not the name of a namespace: write one name, and repeat -n for more"),
        (["-n", ""], "'' is not the name of a namespace"),
        (["--health", "here"], "HOST:PORT"),
    ],
)
def test_an_option_that_cannot_work_alone_names_the_remedy(invoke, arguments, message):
    completed = invoke(*arguments)
    assert completed.exit_code == 2
    assert message in completed.output


OPERATOR = """
import fairlead as fl
op = fl.Operator("zones")

@op.reconcile(fl.kind("run.example.com/v1", "Zone", namespaced=False), owns=[fl.ConfigMap])
async def reconcile(obj, ctx): ...
"""


@pytest.mark.parametrize(("options", "is_rejected"), [([], True), (["-A"], False), (["-n", "default"], False)])
async def test_cluster_scoped_operator_needs_its_namespaces(tmp_path, options, is_rejected):
    from fairlead.api.kinds import kind

    server = Server(World(), tokens=["t"])
    await install_missing(Client(server.transport(), World()), [kind("run.example.com/v1", "Zone", namespaced=False)])
    listening = await server.listen()
    config, program = tmp_path / "config", tmp_path / "zones.py"
    write_private(config, kubeconfig_text(listening.url, "t", listening.ca))
    program.write_text(OPERATOR)
    command = ["run", str(program), "--kubeconfig", str(config), "--once", *options]
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fairlead", *command, stderr=asyncio.subprocess.PIPE
        )
        _, stderr = await asyncio.wait_for(process.communicate(), 30)
    finally:
        await listening.close()
    assert process.returncode == (2 if is_rejected else 0), stderr.decode()
    if is_rejected:
        (line,) = stderr.decode().splitlines()
        assert line == (
            "fairlead: zones reconciles Zone, which is cluster-scoped, and watches ConfigMap, which is namespaced, "
            "only in the namespace default: add -A to watch every namespace, or name the namespaces with -n"
        )


def test_a_group_without_a_command_names_the_commands(capsys):
    from fairlead.cli import main

    with pytest.raises(SystemExit, match="2"):
        main.main(["orphans"])
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "fairlead orphans: a command is missing: add one of apply, plan, watch (see: fairlead orphans --help)"
    )
