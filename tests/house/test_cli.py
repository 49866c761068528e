"""The command line: cheap to start, readable in 80 columns, and one line with the remedy when something is wrong."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli import COMMANDS

TOY = [sys.executable, str(Path(__file__).with_name("toy_commands.py"))]
FAIRLEAD = [sys.executable, "-m", "fairlead"]


def call(*args, **env):
    return subprocess.run(args, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80", **env})


@pytest.mark.smoke
def test_help_fits_80_columns_and_names_each_command():
    answer = call(*FAIRLEAD, "--help")
    assert answer.returncode == 0
    assert max(map(len, answer.stdout.splitlines())) <= 80
    assert all(name in answer.stdout for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_commands_help_fits_80_columns(command):
    answer = call(*FAIRLEAD, command, "--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert max(map(len, answer.stdout.splitlines())) <= 80


def test_help_loads_no_subcommand_and_nothing_heavy():
    code = "import sys\ntry:\n  from fairlead.cli import main; main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    loaded = set(call(sys.executable, "-c", code).stdout.split())
    assert not loaded & {"aiohttp", "asyncio", "yaml", "rich", "msgspec", "prometheus_client", "cryptography"}
    assert {m for m in loaded if m.startswith("fairlead.cli")} == {"fairlead.cli", "fairlead.cli.shell"}


@pytest.mark.smoke
def test_version():
    assert call(*FAIRLEAD, "--version").stdout.startswith("fairlead, version ")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["read", "--wrong"], "No such option '--wrong'. (see: fairlead read --help)"),
        (["read"], "Missing argument 'FILE'. (see: fairlead read --help)"),
        (["read", "/no/such/file"], "'/no/such/file' does not exist"),
        (["unheard-of"], "No such command 'unheard-of'. (see: fairlead --help)"),
        (["refuse"], "fairlead: the kubeconfig /x [2J cannot be read: check its mode"),
    ],
)
def test_what_the_user_can_put_right_is_one_line_and_status_2(args, says):
    answer = call(*TOY, *args)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run", "docs/examples/greeter.py", "--kubeconfig", "/no/such/file"], "'/no/such/file' does not exist"),
        (["run", "docs/examples/greeter.py", "--kubeconfig", "{bad}"], "name another kubeconfig"),
        (["run", "no-such-operator.py", "--embedded"], "no-such-operator.py"),
        (["serve", "--listen", "nonsense"], "HOST:PORT"),
        (["demo", "nonsense"], "'httpproxy'"),
    ],
)
def test_each_commands_own_mistakes_too(args, says, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("{")
    answer = call(*FAIRLEAD, *(arg.format(bad=bad) for arg in args))
    assert (answer.returncode, answer.stdout) == (2, "")
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_ctrl_c_ends_the_demo_in_the_middle_of_virtual_time():
    command = [*FAIRLEAD, "demo", "httpproxy", "--scale", "1000"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)  # it is at work by then
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.strip()) == (130, "")


def test_an_option_has_a_twin_in_the_environment():
    assert call(*TOY, "read", __file__, FAIRLEAD_READ_NAMESPACE="blue").stdout == "blue\n"


def test_ctrl_c_leaves_no_traceback():
    with subprocess.Popen([*TOY, "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors.strip()) == (130, "")


def test_a_reader_that_goes_away_leaves_no_traceback():
    with subprocess.Popen([*TOY, "talk"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.read(5)
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == ""
