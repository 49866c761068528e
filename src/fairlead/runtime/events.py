"""Write Kubernetes Events, which `kubectl describe` shows below an object. Failures are logged and ignored."""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from dataclasses import dataclass

from fairlead.api.builtin import Event
from fairlead.api.errors import AlreadyExists, ApiError, NotFound, UnknownOutcome
from fairlead.api.objects import Object
from fairlead.api.times import rfc3339
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.runtime.logs import escape

log = logging.getLogger("fairlead.events")

_Key = tuple[str, str, str, str]

# The limits of client-go: equal Events within ten minutes are one Event with a count. After 25 different Events an
# object may add one every five minutes.
_WINDOW = 600.0
_BURST = 25
_REFILL = 300.0
_MAX_SERIES = 4096
# Repeats are collected before they are written: a failing object costs two requests a minute, not two a second.
_COLLECT = 30.0


@dataclass(slots=True)
class _Series:
    """One stored Event, and its repetitions that are not written yet.

    The fields `…_at` are monotonic times, `first` and `last` are dates.
    """

    first: str
    last: str
    last_at: float
    count: int = 1
    sent_at: float = float("-inf")
    name: str = ""
    known: bool = False  # whether the server has confirmed an Event of this name


@dataclass(slots=True)
class _Budget:
    """The token bucket that limits the Events about one object."""

    tokens: float
    at: float


class Recorder:
    """Writes Events in the background, counts equal Events in one object, and limits the Events of each object.

    `record` never waits and never raises. An Event that cannot be written is logged and dropped. `flush` writes the
    remaining Events.
    """

    def __init__(self, client: Client, world: World, component: str, instance: str) -> None:
        self._client = client
        self._world = world
        self._component = component
        self._instance = instance[:128]
        self._series: OrderedDict[_Key, tuple[_Series, Object]] = OrderedDict()
        self._budgets: OrderedDict[str, _Budget] = OrderedDict()
        self._dirty: OrderedDict[_Key, None] = OrderedDict()
        self._wake = asyncio.Event()
        self._writing = asyncio.Lock()

    def record(self, about: Object, reason: str, note: str, *, warning: bool = False) -> None:
        """Record an Event about an object. The Event is written later, in the background."""
        kind = "Warning" if warning else "Normal"
        key = (about.uid, kind, reason[:128], escape(note)[:1024])
        now, date = self._world.clock.monotonic(), rfc3339(self._world.clock.now())
        series, _ = self._series.get(key, (None, None))
        if series is not None and now - series.last_at <= _WINDOW:
            series.count, series.last, series.last_at = series.count + 1, date, now
        elif self._take_token(about.uid, now):
            self._series[key] = (_Series(date, date, now), about)
        else:
            return
        self._series.move_to_end(key)
        while len(self._series) > _MAX_SERIES:
            self._dirty.pop(self._series.popitem(last=False)[0], None)
        self._dirty[key] = None
        self._wake.set()

    async def run(self) -> None:
        """Write recorded Events until the task is cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            now = self._world.clock.monotonic()
            waiting = [self._series[key][0].sent_at + _COLLECT - now for key in self._dirty]
            await self._write([key for key, wait in zip(list(self._dirty), waiting, strict=True) if wait <= 0])
            if self._dirty and not self._wake.is_set():
                asyncio.get_running_loop().call_later(max(0.0, min(w for w in waiting if w > 0)), self._wake.set)

    async def flush(self) -> None:
        """Write the recorded Events that are not written yet."""
        await self._write(list(self._dirty))

    def _take_token(self, uid: str, now: float) -> bool:
        budget = self._budgets.setdefault(uid, _Budget(_BURST, now))
        self._budgets.move_to_end(uid)
        if len(self._budgets) > _MAX_SERIES:
            self._budgets.popitem(last=False)
        budget.tokens = min(_BURST, budget.tokens + (now - budget.at) / _REFILL)
        budget.at = now
        if budget.tokens < 1:
            return False
        budget.tokens -= 1
        return True

    async def _write(self, keys: list[_Key]) -> None:
        async with self._writing:
            for key in keys:
                if key not in self._dirty:
                    continue
                del self._dirty[key]
                series, about = self._series[key]
                try:
                    await self._send(key, series, about)
                except asyncio.CancelledError:
                    self._dirty[key] = None  # The request may not have arrived: `flush` sends it again.
                    raise
                except (ApiError, UnknownOutcome, OSError) as error:
                    # A warning, because an operator without permission to create Events should notice it.
                    log.warning("cannot write an Event about %s %s: %s", about.kind, about.name, error)

    async def _send(self, key: _Key, series: _Series, about: Object) -> None:
        namespace = about.namespace or "default"
        count, series.sent_at = series.count, self._world.clock.monotonic()
        if series.known:
            patch = {"count": count, "lastTimestamp": series.last}
            try:
                await self._client.patch(Event, series.name, namespace, patch, type=PatchType.MERGE)
                return
            except NotFound:
                series.name, series.known = "", False  # The Event expired or was deleted.
        _, kind, reason, note = key
        series.name = series.name or f"{about.name[:230]}.{self._world.random.getrandbits(64):016x}"
        event = Event(series.name, namespace) | {
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "name": about.name,
                "uid": about.uid,
                **({"namespace": about.namespace} if about.namespace else {}),
            },
            "type": kind,
            "reason": reason,
            "message": note,
            "count": count,
            "firstTimestamp": series.first,
            "lastTimestamp": series.last,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }
        with contextlib.suppress(AlreadyExists):  # The first attempt arrived, and only its answer was lost.
            await self._client.create(Object(event))
        series.known = True
