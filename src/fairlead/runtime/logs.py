"""Format log lines with the key of the reconciled object, as text or as JSON.

Object content is untrusted: control characters are escaped, and the values of Secrets are never logged. A line that
any logger emits during a pass carries the key and the id of the pass.
"""

import json
import logging
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from fairlead.api.redaction import redact
from fairlead.api.times import rfc3339_micro
from fairlead.api.world import World

_fields: ContextVar[Mapping[str, str]] = ContextVar("fairlead_log_fields", default={})  # noqa: B039 - never mutated


@contextmanager
def fields(**values: str | None) -> Iterator[None]:
    """Add fields to every log line of the current task, and of threads that it starts, inside a `with` block."""
    token = _fields.set({**_fields.get(), **{key: value for key, value in values.items() if value}})
    try:
        yield
    finally:
        _fields.reset(token)


def add_fields(**values: str) -> None:
    """Add these fields to the log lines of the current task, until the enclosing `fields` block ends."""
    _fields.set({**_fields.get(), **values})


def escape(text: str) -> str:
    """Return the text on one line, with escapes for control characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class Formatter(logging.Formatter):
    """Formats a log record as one line: as text (time, level, key, message) or as a JSON object."""

    def __init__(self, world: World, form: str = "text") -> None:
        super().__init__()
        if form not in ("text", "json"):
            raise ValueError(f"log format is 'text' or 'json', got {form!r}")
        self._clock = world.clock
        self._json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        message = _message(record)
        about = _fields.get()
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else record.stack_info or ""
        time = rfc3339_micro(self._clock.now())
        if self._json:
            line = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": message, **about}
            return json.dumps(line | ({"exception": trace} if trace else {}))
        key = "/".join(about[part] for part in ("namespace", "name") if part in about)
        tail = "".join(f" {name}={escape(value)}" for name, value in about.items() if name not in ("namespace", "name"))
        prefix = f"[{escape(key)}] " if key else ""
        line_text = f"{time[:-4]}Z {record.levelname:<7} {prefix}{escape(message)}{tail}"
        # A traceback keeps its lines. Each is escaped, because it may quote object content.
        return "\n".join([line_text, *(f"  {escape(part)}" for part in trace.splitlines())])


def _message(record: logging.LogRecord) -> str:
    """Return the message of a record. If the message cannot be formatted, return its template and the error."""
    try:
        return _format_message(record)
    except Exception as error:
        template = record.msg if isinstance(record.msg, str) else "?"
        return f"{template} [cannot be formatted: {type(error).__name__}, {record.filename} line {record.lineno}]"


def _format_message(record: logging.LogRecord) -> str:
    args = record.args
    if isinstance(args, Mapping):
        args = redact(args)
    elif args:
        args = tuple(_to_loggable(arg) for arg in args)
    message = str(_to_loggable(record.msg))
    return message % args if args else message


def _to_loggable(arg: Any) -> Any:
    is_data = isinstance(arg, Mapping | list) or type(arg) is tuple  # A named tuple, such as a Key, has its own text.
    return json.dumps(redact(arg), default=str) if is_data else arg


def configure(
    world: World, *, form: str = "text", levels: Mapping[str, int] | None = None, stream: TextIO | None = None
) -> None:
    """Configure logging to stderr or `stream`, including Python's warnings and uncaught exceptions of threads.

    Only command lines call this function. A program that uses fairlead as a library configures logging itself.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Formatter(world, form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name, level in (levels if levels is not None else {"fairlead": logging.INFO}).items():
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(True)
    threading.excepthook = _log_thread_exception


def _log_thread_exception(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
        name = ended.thread.name if ended.thread is not None else "a thread"
        logging.getLogger("fairlead.threads").error("thread %s ended with an exception", name, exc_info=ended.exc_value)
