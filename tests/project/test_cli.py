"""Tests that the command line starts fast, fits 80 columns and reports an error as one line with the fix."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli import ALIASES, SECTIONS
from fairlead.cli.serve import kubeconfig_text

TOY = [sys.executable, str(Path(__file__).with_name("toy_commands.py"))]
FAIRLEAD = [sys.executable, "-m", "fairlead"]
COMMANDS = [name for commands in SECTIONS.values() for name in commands]
UNREACHABLE = "cannot connect to 127.0.0.1:1 (Connection refused): is the server up, and is its address right?"


def call(*args, **env):
    return subprocess.run(args, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80", **env})


@pytest.mark.smoke
def test_help_fits_80_columns_and_names_each_command():
    result = call(*FAIRLEAD, "--help")
    assert result.returncode == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert all(name in result.stdout for name in [*COMMANDS, *SECTIONS])


@pytest.mark.parametrize(("old", "new"), ALIASES.items())
def test_old_command_works_and_names_the_new_one(old, new):
    result = call(*FAIRLEAD, old, "--help")
    assert result.stderr == f"fairlead {old} is now called fairlead {new}\n"
    assert result.stdout == call(*FAIRLEAD, *new.split(), "--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_commands_help_fits_80_columns(command):
    result = call(*FAIRLEAD, command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_help_loads_no_subcommand_and_nothing_heavy():
    code = "import sys\ntry:\n  from fairlead.cli import main; main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    loaded = set(call(sys.executable, "-c", code).stdout.split())
    assert not loaded & {"aiohttp", "asyncio", "yaml", "rich", "msgspec", "prometheus_client", "cryptography"}
    assert {m for m in loaded if m.startswith("fairlead.cli")} == {"fairlead.cli", "fairlead.cli.shell"}


@pytest.mark.smoke
def test_version():
    assert call(*FAIRLEAD, "--version").stdout.startswith("fairlead, version ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["read", "--wrong"], "No such option '--wrong'. (see: fairlead read --help)"),
        (["read"], "Missing argument 'FILE'. (see: fairlead read --help)"),
        (["read", "/no/such/file"], "'/no/such/file' does not exist"),
        (["unheard-of"], "No such command 'unheard-of'. (see: fairlead --help)"),
        (["refuse"], "fairlead: the kubeconfig /x [2J cannot be read: check its mode"),
    ],
)
def test_usage_error_is_one_line_with_exit_code_2(args, message):
    result = call(*TOY, *args)
    assert result.returncode == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "docs/examples/greeter.py", "--kubeconfig", "/no/such/file"], "'/no/such/file' does not exist"),
        (["run", "docs/examples/greeter.py", "--kubeconfig", "{bad}"], "name another kubeconfig"),
        (["run", "no-such-operator.py", "--embedded"], "no-such-operator.py"),
        (["serve", "--listen", "nonsense"], "HOST:PORT"),
        (["demo", "nonsense"], "choose from httpproxy"),
        (["run", "docs/examples/greeter.py", "--embedded", "--apply", "{bad}"], "bad.yaml: not YAML at line 1"),
        (["serve", "--faults", "{bad}"], "bad.yaml: not YAML at line 1"),
        (
            ["serve", "--data", "/proc/state"],
            "cannot create /proc/state: No such file or directory; use another directory",
        ),
        (["run", "docs/examples/greeter.py", "--kubeconfig", "{down}"], UNREACHABLE),
        (["blame", "configmap", "x", "--kubeconfig", "{down}"], UNREACHABLE),
        (["demo", "httpproxy", "--kubeconfig", "{down}"], UNREACHABLE),
    ],
)
def test_wrong_argument_of_a_command_is_one_line_with_exit_code_2(args, message, tmp_path):
    bad, unreachable_config = tmp_path / "bad.yaml", tmp_path / "down.yaml"
    bad.write_text("{")
    unreachable_config.write_text(kubeconfig_text("https://127.0.0.1:1", "token", None))
    unreachable_config.chmod(0o600)
    result = call(*FAIRLEAD, *(arg.format(bad=bad, down=unreachable_config) for arg in args))
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_ctrl_c_stops_the_demo_during_virtual_time():
    terminal, output = os.openpty()  # on a terminal the demo shows its progress
    with subprocess.Popen([*FAIRLEAD, "demo", "httpproxy", "--scale", "1000"], stdout=output, stderr=output) as process:
        os.close(output)
        terminal_output = b""
        while b"httpproxy" not in terminal_output:
            terminal_output += os.read(terminal, 4096)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # reading from a closed terminal raises this
            while output_chunk := os.read(terminal, 4096):
                terminal_output += output_chunk
        process.wait(30)
    os.close(terminal)
    assert process.returncode in (130, -signal.SIGINT)  # the signal itself ends the process during an import
    assert b"Traceback" not in terminal_output


def test_option_can_be_set_by_an_environment_variable():
    assert call(*TOY, "read", __file__, FAIRLEAD_READ_NAMESPACE="blue").stdout == "blue\n"


def test_ctrl_c_leaves_no_traceback():
    with subprocess.Popen([*TOY, "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors.strip()) == (130, "")


def test_ctrl_c_during_imports_leaves_no_traceback():
    code = """
import sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "fairlead.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
sys.argv = ["fairlead", "--help"]
import runpy; runpy.run_module("fairlead", run_name="__main__")
"""
    result = call(sys.executable, "-c", code)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


@pytest.mark.parametrize(("signal_", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_server_exits_with_the_code_of_its_signal(signal_, exit_code):
    with subprocess.Popen([*FAIRLEAD, "serve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("serving on https://127.0.0.1:")
        process.send_signal(signal_)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.strip()) == (exit_code, "")


def test_closed_output_pipe_leaves_no_traceback():
    with subprocess.Popen([*TOY, "talk"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.read(5)
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == ""


def commands():
    import click

    from fairlead.cli import main

    def walk(command, path):
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                yield from walk(command.get_command(click.Context(command), name), [*path, name])
        else:
            yield path, command

    return list(walk(main, ["fairlead"]))


def test_every_option_has_an_environment_variable_named_after_it():
    import click

    for path, command in commands():
        for option in command.params:
            if isinstance(option, click.Option):
                flag = max(option.opts, key=len).lstrip("-").replace("-", "_")
                variable = "_".join([*path, flag]).upper() if "--token" not in option.opts else "FAIRLEAD_TOKEN"
                assert option.envvar == variable


def test_environment_variables_of_renamed_parameters_are_read(monkeypatch):
    from fairlead.cli import main

    for name, value in {"NAMESPACE": "a b", "CONTEXT": "prod", "LEADER_ELECT": "1"}.items():
        monkeypatch.setenv(f"FAIRLEAD_RUN_{name}", value)
    run = main.get_command(None, "run")
    params = run.make_context("run", ["greeter.py"]).params
    assert (params["namespaces"], params["context_name"], params["elect"]) == (("a", "b"), "prod", True)
