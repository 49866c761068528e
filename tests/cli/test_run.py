"""Tests of the options and the errors of `fairlead run`."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.api.files import write_private
from fairlead.api.world import World
from fairlead.cli.embedded import run_embedded_server
from fairlead.cli.serve import kubeconfig_text
from fairlead.client.client import Client
from fairlead.server.app import Server

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def fairlead(*args, **env):
    command = [sys.executable, "-m", "fairlead", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, env={**os.environ, **env}, cwd=ROOT)


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def failing(write):
    return write(
        "failing.py",
        """
        import fairlead as fl
        op = fl.Operator("failing")
        Thing = fl.kind("run.example.com/v1", "Thing")

        @op.reconcile(Thing)
        async def fail(obj, ctx):
            raise ValueError("no such colour")
        """,
    )


@pytest.fixture
def thing(write):
    return write("thing.yaml", "{apiVersion: run.example.com/v1, kind: Thing, metadata: {name: t}, spec: {}}")


@pytest.mark.smoke
def test_greeter_runs_once_without_a_cluster():
    completed = fairlead("run", EXAMPLES / "greeter.py", "--embedded", "--once", "--apply", EXAMPLES / "greeting.yaml")
    assert completed.returncode == 0, completed.stderr
    assert "export KUBECONFIG=" in completed.stderr
    assert "no CRD for Greeting.v1.example.com was found" in completed.stderr
    assert "applied Greeting hello" in completed.stderr
    assert "[default/hello] created ConfigMap hello" in completed.stderr


def test_log_level_of_one_logger_shows_its_requests(thing):
    arguments = ("run", EXAMPLES / "greeter.py", "--embedded", "--once", "--apply", EXAMPLES / "greeting.yaml")
    completed = fairlead(*arguments, "--log-level", "error", "--log-level", "fairlead.client=debug")
    assert "PATCH /api/v1/namespaces/default/configmaps/hello 201" in completed.stderr
    assert "created ConfigMap" not in completed.stderr
    wrong = fairlead(*arguments, "--log-level", "loud")
    assert wrong.returncode == 2
    assert "'loud' is not a level: use one of debug, info, warning, error" in wrong.stderr


def test_operator_file_run_as_a_program_takes_the_same_flags():
    command = [sys.executable, EXAMPLES / "greeter.py", "--embedded", "--once"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert completed.returncode == 0, completed.stderr


MISTAKES = {
    "a missing argument": ("@op.reconcile(Thing)\nasync def run(obj): ...", 5, "called as run(obj, ctx)"),
    "a misspelt option": ("@op.reconcile(Thing, own=[])\nasync def run(obj, ctx): ...", 5, "argument 'own'"),
    "a misspelt payload field": (
        "@op.reconcile(Thing)\nasync def run(obj, ctx):\n    await ctx.apply(fl.ConfigMap('c', dta={}))",
        7,
        "did you mean data?",
    ),
    "a forgotten await": (
        "@op.reconcile(Thing)\nasync def run(obj, ctx):\n    ctx.apply(fl.ConfigMap('c', data={}))",
        7,
        "write `await` before the call",
    ),
    "a returned value": ("@op.reconcile(Thing)\nasync def run(obj, ctx):\n    return 5", 5, "raise fl.RequeueAfter"),
    "a hook that returns a coroutine": (
        "op.reconcile(Thing)(lambda obj, ctx: None)\n@op.startup\ndef start(resources):\n    return op.run(None)",
        6,
        "returned a coroutine",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_user_code_is_reported_at_its_line_without_a_traceback(write, thing, mistake):
    code, line, remedy = MISTAKES[mistake]
    program_start = (
        'import fairlead as fl\nop = fl.Operator("wrong")\nThing = fl.kind("run.example.com/v1", "Thing")\n\n'
    )
    completed = fairlead("run", write("wrong.py", program_start + code), "--embedded", "--once", "--apply", thing)
    assert completed.returncode != 0
    assert f"wrong.py:{line}: " in completed.stderr or f"wrong.py, line {line}: " in completed.stderr, completed.stderr
    assert remedy in completed.stderr
    assert "Traceback" not in completed.stderr


def test_once_exits_with_1_and_names_what_failed(failing, thing):
    completed = fairlead("run", failing, "--embedded", "--once", "--apply", thing)
    assert completed.returncode == 1
    assert "thing default/t: ValueError: no such colour" in completed.stderr


def test_json_logs_are_one_object_per_line(failing, thing):
    completed = fairlead("run", failing, "--embedded", "--once", "--apply", thing, "--log-format", "json")
    lines = [json.loads(line) for line in completed.stderr.splitlines()]
    entry = next(line for line in lines if "no such colour" in line["message"])
    assert (entry["namespace"], entry["name"], entry["controller"]) == ("default", "t", "thing")
    assert len(entry["reconcile"]) == 8


def test_options_can_be_set_by_environment_variables(failing):
    completed = fairlead("run", failing, FAIRLEAD_RUN_EMBEDDED="1", FAIRLEAD_RUN_ONCE="1")
    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "defines no operator"),
        ("import fairlead as fl\na, b = fl.Operator('a'), fl.Operator('b')", "several operators (a, b)"),
        ("1 / 0", "broken.py, line 1: ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import fairlead as fl\nop = fl.Operator('a')\nop.main()", "below if __name__ == '__main__'"),
        ("import no_such_module", "imports no_such_module, which is not installed"),
    ],
)
def test_file_that_cannot_be_loaded_is_one_line_with_the_fix(write, text, message):
    completed = fairlead("run", write("broken.py", text), "--embedded")
    assert completed.returncode == 2
    (line,) = completed.stderr.splitlines()
    assert message in line


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere.py"], "no file nowhere.py"),
        (["no.such.module"], "neither a file nor a module no.such.module"),
        ([EXAMPLES], "controller.py"),
        ([EXAMPLES / "greeter.py", "-A", "-n", "x"], "cannot be combined"),
        ([EXAMPLES / "greeter.py", "--embedded", "--cluster", "a=b"], "--embedded cannot be combined with --cluster"),
        ([EXAMPLES / "greeter.py", "--apply", EXAMPLES / "greeting.yaml"], "kubectl apply"),
        ([EXAMPLES / "greeter.py", "--health", "here", "--embedded"], "HOST:PORT"),
    ],
)
def test_wrong_call_is_one_line_with_the_fix(args, message):
    completed = fairlead("run", *args)
    assert completed.returncode == 2
    (line,) = completed.stderr.splitlines()
    assert message in line


def test_unreachable_cluster_is_one_line(tmp_path):
    config = tmp_path / "config"
    config.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "k", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "k",
            }
        )
    )
    completed = fairlead("run", EXAMPLES / "greeter.py", "--kubeconfig", config)
    assert completed.returncode == 2
    assert "Traceback" not in completed.stderr
    assert "cannot work on" in completed.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("token", "message"), [("right", "does not serve Greeting in example.com/v1: install"), ("wrong", "Unauthorized")]
)
async def test_once_on_an_unusable_cluster_ends_with_one_line(tmp_path, token, message):
    listening = await Server(World(), tokens=["right"]).listen()
    config = tmp_path / "config"
    write_private(config, kubeconfig_text(listening.url, token, listening.ca))
    command = ["run", str(EXAMPLES / "greeter.py"), "--kubeconfig", str(config), "--once"]
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fairlead", *command, stderr=asyncio.subprocess.PIPE
        )
        _, stderr = await asyncio.wait_for(process.communicate(), 30)
    finally:
        await listening.close()
    (line,) = stderr.decode().splitlines()
    assert message in line
    assert process.returncode == 2


async def test_embedded_server_collects_garbage():
    world = World()
    async with run_embedded_server(world) as transport, asyncio.timeout(10):
        client = Client(transport, world)
        owner = await client.create(ConfigMap("owner", "default"))
        child = ConfigMap("child", "default")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
        child["metadata"]["ownerReferences"] = [reference]
        await client.create(child)
        async with client.watch(ConfigMap, "default") as watch:
            await client.delete(ConfigMap, "owner", "default")
            async for frame in watch:
                if frame.type == "DELETED" and b'"child"' in frame.raw:
                    return


def test_directory_and_package_run_their_operator(write, failing):
    write("pkg/__init__.py", "")
    write("pkg/names.py", "NAME = 'packaged'")
    home = write(
        "pkg/controller.py",
        """
        import fairlead as fl
        from .names import NAME
        op = fl.Operator(NAME)
        """,
    ).parent
    assert fairlead("run", home, "--embedded", "--once").returncode == 0


def test_operator_py_in_a_directory_is_reported_with_the_new_name(write):
    home = write("old/operator.py", "import fairlead as fl\nop = fl.Operator('old')").parent
    completed = fairlead("run", home, "--embedded", "--once")
    assert completed.returncode != 0
    assert "rename it to controller.py" in completed.stderr


def test_dev_restarts_the_operator_when_its_file_changes(failing, thing):
    command = [sys.executable, "-m", "fairlead", "run", failing, "--embedded", "--dev", "--apply", thing]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert wait_for(process, "no such colour")
        failing.write_text(failing.read_text().replace("no such colour", "no such shape"))
        assert wait_for(process, "no such shape")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def wait_for(process, expected):
    return any(expected in line for line in process.stderr)


def test_last_line_of_json_logs_is_json(write):
    hook = """
        import fairlead as fl
        op = fl.Operator("hooked")

        @op.startup
        def connect(resources):
            raise OSError("no database")
        """
    completed = fairlead("run", write("hook.py", hook), "--embedded", "--log-format", "json")
    entries = [json.loads(line) for line in completed.stderr.splitlines()]
    assert entries[-1]["message"] == "hook connect failed: OSError: no database"
    assert "Traceback" in entries[-2]["exception"]
    assert completed.returncode == 2


def test_user_code_that_ignores_cancellation_does_not_block_exit(write, thing):
    program = write(
        "deaf.py",
        """
        import asyncio, time
        import fairlead as fl
        op = fl.Operator("deaf")

        @op.reconcile(fl.kind("run.example.com/v1", "Thing"))
        async def deaf(obj, ctx):
            ctx.log.info("at work")
            while True:
                try:
                    await asyncio.sleep(3600)
                except:
                    pass

        @op.timer(0.01)
        def stuck(view):
            time.sleep(3600)
        """,
    )
    command = [sys.executable, "-m", "fairlead", "run", program, "--embedded", "--apply", thing]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=enable_ctrl_c)
    try:
        assert wait_for(process, "at work")
        for _ in range(2):
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=90)
        assert process.returncode == 130
    finally:
        process.kill()
        process.communicate()


def enable_ctrl_c():
    """Handle SIGINT, because a shell ignores it for tests that run as a background job."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_fail_on_change_exits_with_1_only_if_something_would_change(write):
    program_start = 'import fairlead as fl\nop = fl.Operator("quiet")\nThing = fl.kind("run.example.com/v1", "Thing")\n'
    quiet = write("quiet.py", f"{program_start}@op.reconcile(Thing)\nasync def run(obj, ctx): ...")
    completed = fairlead("run", quiet, "--embedded", "--once", "--dry-run", "--fail-on-change")
    assert (completed.returncode, completed.stdout) == (0, "no objects would change\n"), completed.stderr
    arguments = ("run", EXAMPLES / "greeter.py", "--embedded", "--apply", EXAMPLES / "greeting.yaml")
    completed = fairlead(*arguments, "--once", "--dry-run", "--fail-on-change")
    assert completed.returncode == 1, completed.stderr
    assert "@ ConfigMap default/hello would be created" in completed.stdout
    assert fairlead(*arguments, "--once", "--dry-run").returncode == 0
    wrong = fairlead(*arguments, "--fail-on-change")
    assert wrong.returncode == 2
    assert "--fail-on-change works only with --dry-run and --once: add both" in wrong.stderr
