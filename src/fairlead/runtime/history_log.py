"""The log of an operator, written by a subscriber of its history.

INFO has what changed: objects that were created, changed or deleted, conditions, clean-up. DEBUG has why each pass ran,
what it read and skipped, and how long it took. The logger `fairlead.client` has each request at DEBUG.
"""

import logging
from dataclasses import dataclass, field
from types import TracebackType

from fairlead.api.history import ENDED, READ, REQUEST, SKIPPED, WOKEN, WRITTEN, History, ObjectRef, Point, Record
from fairlead.api.history_text import (
    describe,
    describe_object,
    describe_paths,
    describe_transition,
    find_transitions,
    format_seconds,
)
from fairlead.api.source_locations import is_fairlead
from fairlead.runtime.pass_results import needs_traceback
from fairlead.writes.errors import WriteError

request_log = logging.getLogger("fairlead.client")

SUMMARY_INTERVAL = 60.0
"""A repeated error is counted in at most one line in this many seconds."""
MAX_ERRORS = 1000
"""The different errors that are remembered. The oldest is forgotten, and would be logged with its traceback again."""

_ErrorKey = tuple[str, ...]


@dataclass
class _RepeatedError:
    """An error that was logged with its traceback, and how often it happened since."""

    since: float
    logged_at: float
    count: int = 0
    objects: set[ObjectRef | None] = field(default_factory=set)


class HistoryLog:
    """Logs the records of one run.

    Guarantees: the traceback of an error is logged once. Later occurrences are counted, in one line per minute. The
    first failure of each object is always logged.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._errors: dict[_ErrorKey, _RepeatedError] = {}
        self._failing: dict[tuple[str, ObjectRef | None], tuple[_ErrorKey, int]] = {}

    def subscribe(self, history: History) -> None:
        """Subscribe to the points that the levels of the loggers ask for. Set the levels before."""
        points: list[Point] = [ENDED]
        if self._log.isEnabledFor(logging.INFO):
            points.append(WRITTEN)
        if self._log.isEnabledFor(logging.DEBUG):
            points += [WOKEN, READ, SKIPPED]
        history.subscribe(self._on_record, points)
        if request_log.isEnabledFor(logging.DEBUG):
            history.subscribe(lambda record: request_log.debug("%s", describe(record)), [REQUEST])

    def _on_record(self, record: Record) -> None:
        if record.point == WRITTEN:
            self._log_write(record)
        elif record.point == ENDED:
            self._log_end(record)
        else:
            self._log_detail(record)

    def _log_detail(self, record: Record) -> None:
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("%s", describe(record))

    def _log_write(self, record: Record) -> None:
        if record.outcome not in ("created", "changed", "deleted", "deleting"):
            self._log_detail(record)
            return
        if record.object == record.primary and record.outcome == "deleted":
            self._log.info("cleaned up: the finalizer is removed, and %s is deleted", describe_object(record.object))
            return
        if record.outcome != "changed" or not record.subresource:
            self._log.info("%s", describe(record))
            return
        transitions = find_transitions(record.fields)
        for condition_type, parts in transitions.items():
            self._log.info("%s", describe_transition(condition_type, parts))
        others = [path for path, *_ in record.fields if not _is_routine(path)]
        namespace = record.primary.namespace if record.primary is not None else None
        if others:
            self._log.info("changed %s: %s", describe_object(record.object, namespace), describe_paths(others))
        elif not transitions:
            self._log_detail(record)

    def _log_end(self, record: Record) -> None:
        self._log_detail(record)
        if record.outcome == "error" and record.error is not None:
            self._log_error(record, record.error)
            return
        failed = self._failing.pop((record.actor, record.object), None)
        if failed is not None and record.outcome in ("success", "requeue_after"):
            self._log.info("succeeded after %d failed %s", failed[1], "pass" if failed[1] == 1 else "passes")

    def _log_error(self, record: Record, error: BaseException) -> None:
        text, is_unexpected = describe_error(error), needs_traceback(error)
        place = _raised_at(error) if is_unexpected else ""
        key = (record.actor, type(error).__name__, place or text)
        known = self._errors.get(key)
        who = (record.actor, record.object)
        last_key, failures = self._failing.get(who, ((), 0))
        self._failing[who] = key, failures + 1
        if known is None:
            self._errors[key] = _RepeatedError(record.time, record.time)
            if len(self._errors) > MAX_ERRORS:
                del self._errors[next(iter(self._errors))]
            trace = (type(error), error, _user_traceback(error)) if is_unexpected else None
            self._log.error("%s%s", text, _hint(error), exc_info=trace)
            return
        known.count += 1
        known.objects.add(record.object)
        if last_key != key:
            self._log.error("%s%s", text, f" (traceback above, {place})" if is_unexpected else _hint(error))
        elif record.time - known.logged_at >= SUMMARY_INTERVAL:
            times, objects = known.count, len(known.objects)
            whose = f", for {objects} objects" if objects > 1 else ""
            took = format_seconds(record.time - known.since)
            self._log.error("%s: the same error, %d times in %s%s", text, times, took, whose)
            known.logged_at = record.time


def describe_error(error: BaseException) -> str:
    """Return the type and the text of an error: the text alone may be no more than `'who'`."""
    name = getattr(error, "reason", "") or type(error).__name__
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    return f"{name}: {error}{notes}" if str(error) else f"{name}{notes}"


def _hint(error: BaseException) -> str:
    return f" (in code: {error.hint})" if isinstance(error, WriteError) and error.hint else ""


def _is_routine(path: str) -> bool:
    return path in ("status", "status.observedGeneration") or path.startswith("status.conditions")


def _raised_at(error: BaseException) -> str:
    """Return the file and line that raised the error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""


def _user_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback from the first frame of user code on, or all of it if no frame is."""
    trace = error.__traceback__
    while trace is not None and _is_machinery(str(trace.tb_frame.f_globals.get("__name__") or "")):
        trace = trace.tb_next
    return trace or error.__traceback__


def _is_machinery(module: str) -> bool:
    return is_fairlead(module) or module.partition(".")[0] in ("asyncio", "concurrent", "contextvars", "threading")
