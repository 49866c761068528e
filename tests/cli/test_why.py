"""Tests of `fairlead run --ui` and `fairlead why` as a user runs them."""

import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def fairlead(*args):
    command = [sys.executable, "-m", "fairlead", *map(str, args)]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The page of an operator with one object that succeeds and one that fails."""
    greetings = tmp_path_factory.mktemp("why") / "greetings.yaml"
    manifest = (EXAMPLES / "greeting.yaml").read_text()
    greetings.write_text(f"{manifest}\n---\n{manifest.replace('name: hello', 'name: bad').replace('who:', 'nobody:')}")
    command = [sys.executable, "-m", "fairlead", "run", EXAMPLES / "greeter.py", "--embedded", "--apply", greetings]
    process = subprocess.Popen(
        [*map(str, command), "--ui", "0", "-v"], stderr=subprocess.PIPE, text=True, cwd=ROOT, bufsize=1
    )
    assert process.stderr is not None
    found, ended = "", set()
    for line in process.stderr:
        if match := re.search(r"see what greeter does at (http://127\.0\.0\.1:\d+)/", line):
            found = match[1]
        if match := re.search(r"\[default/(\w+)\] ended after", line):
            ended.add(match[1])
        if found and ended == {"hello", "bad"}:
            break
    reader = threading.Thread(target=process.stderr.read, daemon=True)  # A full pipe would block the operator.
    reader.start()
    yield found
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    reader.join()
    process.stderr.close()


def test_why_prints_causes_reads_writes_and_the_result(url):
    completed = fairlead("why", "greeting", "hello", "--url", url, "--passes", 20)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith("Greeting default/hello, controller greeting of greeter\n")
    for line in ("woken by start: the object exists", "created ConfigMap hello", "+   text: Hello, world"):
        assert line in completed.stdout


def test_why_exits_with_1_for_a_failing_object(url):
    completed = fairlead("why", "Greeting", "bad", "-n", "default", "--url", url)
    assert completed.returncode == 1
    assert re.search(r"pass \w{8}: error \(KeyError\)", completed.stdout)
    assert completed.stderr == ""


def test_why_prints_json(url):
    completed = fairlead("why", "greetings", "hello", "--url", url, "--format", "json")
    assert completed.returncode == 0
    answer = json.loads(completed.stdout)
    assert answer["summary"]["object"] == {
        "kind": "Greeting", "namespace": "default", "name": "hello", "apiVersion": "example.com/v1", "cluster": "",
    }  # fmt: skip


def test_why_of_an_unknown_object_or_kind_exits_with_2(url):
    completed = fairlead("why", "greeting", "nope", "--url", url)
    assert completed.returncode == 2
    assert "greeter knows no Greeting nope: check the name" in completed.stderr
    completed = fairlead("why", "pod", "hello", "--url", url)
    assert completed.returncode == 2
    assert "greeter does not reconcile pod: it reconciles Greeting" in completed.stderr


def test_why_without_an_operator_names_the_remedy():
    completed = fairlead("why", "greeting", "hello", "--url", "http://127.0.0.1:1")
    assert completed.returncode == 2
    assert "no operator answers at http://127.0.0.1:1" in completed.stderr
    assert "start it with fairlead run … --ui, or name its page with --url" in completed.stderr
    assert "Traceback" not in completed.stderr


@pytest.mark.parametrize("url", ["127.0.0.1:8095", "https://localhost", "http://", "http://[::1", "http://a:x"])
def test_why_rejects_a_wrong_url(url):
    completed = fairlead("why", "greeting", "hello", "--url", url)
    assert completed.returncode == 2
    assert "write http://HOST:PORT" in completed.stderr


@pytest.mark.parametrize(("status", "body"), [(200, b"<html>"), (200, b"{}"), (404, b"<html>"), (500, b'["error"]')])
def test_why_reports_a_server_that_is_not_an_operator(status, body):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        completed = fairlead("why", "greeting", "hello", "--url", f"http://127.0.0.1:{server.server_port}")
    assert completed.returncode == 2
    assert "check --url" in completed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ui", "0.0.0.0:8095"], "neither TLS nor a password"),
        (["--ui", "greeter"], "must be PORT or HOST:PORT"),
        (["--ui-allow-host", "example.com"], "--ui-allow-host works only with --ui: add it"),
    ],
)
def test_wrong_ui_options_are_reported_with_the_remedy(arguments, message):
    completed = fairlead("run", EXAMPLES / "greeter.py", "--embedded", "--once", *arguments)
    assert completed.returncode == 2
    assert message in completed.stderr
    assert "Traceback" not in completed.stderr


def test_run_without_ui_loads_no_part_of_the_page():
    code = """
import sys
from fairlead.cli import main
try:
    main.main(["run", "docs/examples/greeter.py", "--embedded", "--once", "--apply", "docs/examples/greeting.yaml"])
finally:
    print(*(name for name in sys.modules if "report.live" in name or "pass_memory" in name))
"""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert completed.stdout.strip() == ""
