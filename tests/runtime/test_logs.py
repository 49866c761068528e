"""Tests that log lines name their object, escape control characters and contain no secrets."""

import asyncio
import io
import json
import logging
import subprocess
import sys
import textwrap

import pytest

from fairlead.api.builtin import Secret
from fairlead.api.world import World
from fairlead.runtime import logs


class Clock:
    def now(self):
        return 1_767_225_600.25

    def monotonic(self):
        return 0.0


@pytest.fixture(params=["text", "json"])
def log_format(request):
    return request.param


@pytest.fixture
def lines(log_format):
    stream = io.StringIO()
    logger = logging.getLogger("fairlead.test_logs")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.Formatter(World(clock=Clock()), log_format))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield logger, lambda: stream.getvalue().splitlines()
    logger.removeHandler(handler)


def test_log_line_has_the_key_and_the_reconcile_id(lines, log_format):
    logger, read = lines
    with logs.fields(controller="greeter", namespace="default", name="hello", reconcile="ab12"):
        logger.info("applied %s", "greeting")
    logger.info("outside")
    line_inside_pass, line_outside_pass = read()
    if log_format == "json":
        assert json.loads(line_inside_pass) == {
            "time": "2026-01-01T00:00:00.250000Z",
            "level": "info",
            "logger": "fairlead.test_logs",
            "message": "applied greeting",
            "controller": "greeter",
            "namespace": "default",
            "name": "hello",
            "reconcile": "ab12",
        }
        assert "name" not in json.loads(line_outside_pass)
    else:
        assert line_inside_pass == (
            "2026-01-01T00:00:00.250Z INFO    [default/hello] applied greeting controller=greeter reconcile=ab12"
        )
        assert "[" not in line_outside_pass


async def test_thread_of_asyncio_keeps_the_log_fields(lines):
    logger, read = lines
    with logs.fields(name="hello"):
        await asyncio.to_thread(logger.info, "from a thread")
    assert "hello" in read()[0]


def test_object_content_cannot_forge_log_lines(lines, log_format):
    logger, read = lines
    with logs.fields(name="evil\x1b[2J"):
        logger.info("message %s", "a\nERROR forged\x1b]0;title\x07\u202e")
    (line,) = read()
    assert not any(char in line for char in "\x1b\x07\u202e")


@pytest.mark.parametrize("key", ["data", "stringData"])
def test_values_of_secrets_are_never_logged(lines, key):
    logger, read = lines
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": '{"data": "aHVudGVyMg=="}'}
    secret = Secret("credentials", annotations=annotations, **{key: {"password": "aHVudGVyMg=="}})
    logger.info("got %s", secret)
    logger.info(secret)
    logger.info("list %s", [{"items": [secret]}])
    text = "\n".join(read())
    assert "aHVudGVyMg==" not in text
    assert "password" in text
    assert secret[key] == {"password": "aHVudGVyMg=="}


def test_traceback_is_escaped_line_by_line(lines, log_format):
    logger, read = lines
    try:
        raise ValueError("bad \x1b[31m value")
    except ValueError:
        logger.exception("failed")
    text = "\n".join(read())
    assert "\x1b" not in text
    assert "ValueError" in text


def test_unknown_log_format_names_the_choices():
    with pytest.raises(ValueError, match="'text' or 'json'"):
        logs.Formatter(World(), "xml")


class RaisesInStr:
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("line", [("%d of them", "many"), ("%s", RaisesInStr()), (RaisesInStr(),), ("%s %s", 1)])
def test_message_that_cannot_be_formatted_is_still_logged(log_format, line):
    record = logging.LogRecord("somebody", logging.WARNING, "their.py", 7, line[0], line[1:], None)
    line = logs.Formatter(World(clock=Clock()), log_format).format(record)
    assert "their.py line 7" in (json.loads(line)["message"] if log_format == "json" else line)


def test_stack_info_is_logged(lines):
    logger, read = lines
    logger.warning("look", stack_info=True)
    assert "test_stack_info_is_logged" in "\n".join(read())


def test_warnings_and_thread_exceptions_are_logged():
    program = """
        import threading, warnings
        from fairlead.api.world import World
        from fairlead.runtime import logs
        logs.configure(World(), form="json")
        warnings.warn("old ways")
        thread = threading.Thread(target=lambda: 1 / 0, name="walker")
        thread.start()
        thread.join()
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60
    )
    warning_line, thread_line = (json.loads(line) for line in process.stderr.splitlines())
    assert "old ways" in warning_line["message"]
    assert thread_line["message"] == "thread walker ended with an exception"
    assert "ZeroDivisionError" in thread_line["exception"]
