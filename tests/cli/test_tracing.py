"""`fairlead run --trace` sends the spans to a collector."""

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def collector():
    """Return the address of a collector and the list of the bodies that it received."""
    bodies = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_): ...

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()
        thread.join()


def run_greeter(endpoint):
    command = [sys.executable, "-m", "fairlead", "run", EXAMPLES / "greeter.py", "--embedded", "--once", "--trace"]
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    arguments = ["--apply", EXAMPLES / "greeting.yaml"]
    return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, timeout=30)


def test_spans_are_sent_to_the_collector(collector):
    endpoint, bodies = collector
    completed = run_greeter(endpoint)
    assert completed.returncode == 0, completed.stderr
    assert " trace_id=" in completed.stderr
    (path, body), *_ = bodies
    assert path == "/v1/traces"
    for expected_bytes in (
        b"reconcile Greeting",
        b"PATCH /api/v1/namespaces/default/configmaps/hello",
        b"service.name",
    ):
        assert expected_bytes in body


def test_collector_that_is_down_does_not_fail_the_run():
    completed = run_greeter("http://127.0.0.1:1")
    assert completed.returncode == 0, completed.stderr
