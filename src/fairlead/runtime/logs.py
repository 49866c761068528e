"""Log lines that say which object they are about, as text for people or JSON for machines.

Object text is hostile: control characters never reach a terminal raw, and what a Secret holds is never written.
Any line logged inside a reconcile, by whatever logger, carries the key and the reconcile's id.
"""

import json
import logging
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from fairlead.api.times import rfc3339_micro
from fairlead.api.world import World

_fields: ContextVar[Mapping[str, str]] = ContextVar("fairlead_log_fields", default={})  # noqa: B039 - never mutated


@contextmanager
def fields(**values: str | None) -> Iterator[None]:
    """Within this block every log line of this task, and of threads it starts by asyncio, carries these fields."""
    token = _fields.set({**_fields.get(), **{key: value for key, value in values.items() if value}})
    try:
        yield
    finally:
        _fields.reset(token)


def redact(value: Any) -> Any:
    """The same value without what Secrets hold: their keys stay, their values do not."""
    if isinstance(value, Mapping):
        secret = value.get("kind") == "Secret"
        hidden = {"data", "stringData"} if secret else set()
        return {
            key: dict.fromkeys(item, "<redacted>") if key in hidden and isinstance(item, Mapping) else redact(item)
            for key, item in value.items()
            if not (secret and key == "metadata")
        } | ({"metadata": _without_last_applied(value.get("metadata"))} if secret and "metadata" in value else {})
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return value


def _without_last_applied(metadata: Any) -> Any:
    # kubectl keeps a whole copy of what was applied in an annotation, data included
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("annotations"), Mapping):
        return metadata
    annotations = dict(metadata["annotations"])
    if "kubectl.kubernetes.io/last-applied-configuration" in annotations:
        annotations["kubectl.kubernetes.io/last-applied-configuration"] = "<redacted>"
    return {**metadata, "annotations": annotations}


def escape(text: str) -> str:
    """The text on one line, with everything a terminal could act on spelled out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class Formatter(logging.Formatter):
    """Formats a record as one line: `text` (time, level, key, message) or `json` (one object)."""

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
        # a traceback keeps its lines, each escaped: it quotes what the object said
        return "\n".join([line_text, *(f"  {escape(part)}" for part in trace.splitlines())])


def _message(record: logging.LogRecord) -> str:
    """What it says. One that cannot be put together is a line all the same: it may be the one that matters."""
    try:
        return _put_together(record)
    except Exception as error:
        said = record.msg if isinstance(record.msg, str) else "?"
        return f"{said} [cannot be put together: {type(error).__name__}, {record.filename} line {record.lineno}]"


def _put_together(record: logging.LogRecord) -> str:
    args = record.args
    if isinstance(args, Mapping):
        args = redact(args)
    elif args:
        args = tuple(_plain(arg) for arg in args)
    message = str(redact(record.msg)) if isinstance(record.msg, Mapping) else str(record.msg)
    return message % args if args else message


def _plain(arg: Any) -> Any:
    return json.dumps(redact(arg), default=str) if isinstance(arg, Mapping | list) else arg


def configure(world: World, *, form: str = "text", level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send this process's log lines to stderr in that form; Python's warnings and what ends a thread are such lines.

    For programs; a library's caller sets up its own.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Formatter(world, form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("fairlead").setLevel(level)
    logging.captureWarnings(True)
    threading.excepthook = _thread_ended


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
        name = ended.thread.name if ended.thread is not None else "a thread"
        logging.getLogger("fairlead.threads").error("%s ended by an exception", name, exc_info=ended.exc_value)
