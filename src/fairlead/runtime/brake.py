"""The brake: report a write loop once, and delay the passes of the object that loops."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.api.errors import ApiError, UnknownOutcome
from fairlead.api.field_changes import find_changes
from fairlead.api.field_owners import find_owners
from fairlead.api.history import WOKEN, WRITTEN, History, ObjectRef, Record
from fairlead.api.kinds import kind
from fairlead.api.objects import Object
from fairlead.runtime.services import Key, Services
from fairlead.runtime.tuning import Tuning
from fairlead.runtime.wakes import Wake
from fairlead.runtime.write_loops import Field, PassWrites, Rewrites, Streak, WokenBy, describe_value

REASON = "WriteLoop"
"""The reason of the Event about a loop, and what its log line starts with."""
# A loop that paused for this long is over. If it starts again earlier, it is braked at once and not reported again.
FORGET_AFTER = 600.0
# A rival is usually found at the first attempt. Each attempt is one GET.
_MAX_RIVAL_READS = 10


@dataclass(eq=False, slots=True)
class Loop:
    """A write loop that was noticed."""

    fields: list[Field]  # the rewritten fields; the first one is reported
    delay: float = 0.0  # seconds, of the last wait
    last_rewrite: float = 0.0
    is_braking: bool = False
    is_reported: bool = False
    report_timer: asyncio.TimerHandle | None = None


@dataclass(eq=False, slots=True)
class _Watched:
    """The recent writes of the passes over one object."""

    primary: ObjectRef
    manager: str
    streak: Streak = field(default_factory=Streak)
    last_write: float = 0.0
    loop: Loop | None = None
    rivals: Counter[str] = field(default_factory=Counter)  # field managers that reverted the loop's fields
    rival_reads: int = 0


class Brake:
    """Notices write loops in the history, reports each once, and holds their keys in the queue.

    Guarantees: after `brake_after` passes in a row that rewrite the same field, the passes over that object wait
    `brake_base` seconds, doubling up to `brake_max`. Events are delayed and never dropped. Other objects are not
    delayed. A new generation, a deletion, and a pass that leaves the field unchanged end the wait. The passes of an
    object that is being deleted do not wait. A report is a log line, an Event and a metric. None of them writes to the
    object.

    Does not guarantee: memory of loops after a restart. A new process counts from zero.
    """

    def __init__(self, services: Services, tunings: Mapping[str, Tuning]) -> None:
        self._services = services
        self._tunings = tunings
        self._passes: dict[Key, PassWrites] = {}
        self._watched: OrderedDict[Key, _Watched] = OrderedDict()  # objects without a loop; the oldest write first
        self._loops: dict[Key, _Watched] = {}
        self._reads: set[asyncio.Task[None]] = set()

    def subscribe(self, history: History) -> None:
        """Start to look for loops in the history."""
        history.subscribe(self._on_woken, [WOKEN])
        history.subscribe(self._on_written, [WRITTEN])

    def stop(self) -> None:
        """Cancel what runs in the background."""
        for task in self._reads:
            task.cancel()
        for watched in self._loops.values():
            if watched.loop is not None and watched.loop.report_timer is not None:
                watched.loop.report_timer.cancel()

    def braked_objects(self, controller: str) -> int:
        """Return how many objects of the controller are delayed now."""
        braking = [key for key, each in self._loops.items() if each.loop is not None and each.loop.is_braking]
        return sum(key.controller == controller for key in braking)

    # What the history says

    def _on_woken(self, record: Record) -> None:
        if record.primary is not None:
            self._passes[_key(record, record.primary)] = PassWrites(record)

    def _on_written(self, record: Record) -> None:
        if record.primary is not None and (writes := self._passes.get(_key(record, record.primary))) is not None:
            writes.add(record)

    # Where keys are queued

    def on_change(self, key: Key, wake: Wake) -> None:
        """Consider a change that reconciles the key, before the key is added to the queue."""
        watched = self._loops.get(key) or self._watched.get(key)
        if watched is None or wake.change is None:
            return
        if watched.loop is not None and _is_exempt(wake, watched):
            self._forget(key)
            self._services.queue.release(key)
            return
        self._look_for_rival(key, watched, wake)

    def end_pass(self, key: Key) -> float:
        """Count a pass that ends, before its key is returned. Return the seconds for which the queue holds the key."""
        writes, now = self._passes.pop(key, None), self._now()
        self._forget_old(now)
        watched = self._loops.get(key) or self._watched.get(key)
        if writes is None or (watched is None and not writes.changes):
            return 0.0
        if self._version(writes.primary) is None:  # The object does not exist any more.
            self._forget(key)
            return 0.0
        if watched is None:
            watched = self._watched[key] = _Watched(writes.primary, writes.manager)
        tuning = self._tunings[key.controller]
        woken_by = watched.streak.add_pass(writes)
        if writes.changes:
            watched.last_write = now
            if watched.loop is None:
                self._watched.move_to_end(key)
        longest = watched.streak.find_longest()
        if watched.loop is None and longest is not None and longest[1].count >= tuning.brake_after:
            self._notice(key, watched)
        return self._brake(key, watched, writes, woken_by, tuning) if watched.loop is not None else 0.0

    def _brake(self, key: Key, watched: _Watched, writes: PassWrites, woken_by: WokenBy, tuning: Tuning) -> float:
        loop = watched.loop
        assert loop is not None
        if not any(field in writes.changes for field in loop.fields):
            loop.is_braking = False  # The fields stayed as they were.
            return 0.0
        primary = self._find_object(watched.primary)
        if primary is None or primary.deleting:
            self._forget(key)
            return 0.0
        loop.last_rewrite = self._now()
        if woken_by is not WokenBy.LOOP:
            return 0.0  # The next pass shows whether the fields are rewritten without this reason too.
        loop.is_braking = True
        loop.delay = min(tuning.brake_max, loop.delay * 2 or tuning.brake_base)
        self._services.queue.hold(key, loop.delay)
        if not loop.is_reported:
            self._report_soon(key, watched, loop)
        return loop.delay

    def _notice(self, key: Key, watched: _Watched) -> None:
        rewritten = sorted(watched.streak.fields.items(), key=lambda item: -item[1].count)
        most = rewritten[0][1].count
        watched.loop = Loop([field for field, rewrites in rewritten if rewrites.count * 2 > most])
        self._watched.pop(key, None)
        self._loops[key] = watched
        self._services.metrics.write_loops.labels(key.controller).inc()

    def _forget(self, key: Key) -> None:
        self._watched.pop(key, None)
        watched = self._loops.pop(key, None)
        if watched is not None and watched.loop is not None and watched.loop.report_timer is not None:
            watched.loop.report_timer.cancel()
            self._report(key, watched)

    def _forget_old(self, now: float) -> None:
        while self._watched:
            key, watched = next(iter(self._watched.items()))
            if now - watched.last_write <= self._tunings[key.controller].brake_base:
                break
            del self._watched[key]
        for key, watched in list(self._loops.items()):
            if watched.loop is not None and now - watched.loop.last_rewrite > FORGET_AFTER:
                self._forget(key)

    # Who reverts our writes

    def _look_for_rival(self, key: Key, watched: _Watched, wake: Wake) -> None:
        """Read the changed object from the server, whose managedFields name the rival. The cache has only our own.

        The object is read as soon as the change is known, because the next pass makes us the owner again.
        """
        change, longest = wake.change, watched.streak.find_longest()
        is_known = bool(watched.rivals) or watched.rival_reads >= _MAX_RIVAL_READS
        if change is None or wake.kind is None or longest is None or is_known:
            return
        loop_field, rewrites = longest
        if watched.loop is not None:
            loop_field = watched.loop.fields[0]
            rewrites = watched.streak.fields.get(loop_field, rewrites)
        ref = loop_field.object
        is_suspect = rewrites.reverts > 0 and rewrites.count * 2 >= min(self._tunings[key.controller].brake_after, 20)
        is_same = (change.name, wake.kind.kind, wake.cluster) == (ref.name, ref.kind, ref.cluster)
        if not is_suspect or not is_same or (watched.loop is not None and watched.loop.is_reported):
            return
        watched.rival_reads += 1
        task = asyncio.create_task(self._find_rival(key, watched, wake, loop_field), name=f"rival of {key}")
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _find_rival(self, key: Key, watched: _Watched, wake: Wake, field: Field) -> None:
        ref = field.object
        services = self._services.clusters[ref.cluster] if ref.cluster else self._services
        try:
            obj = await services.client.get(kind(ref.api_version, ref.kind), ref.name, ref.namespace)
        except (ApiError, UnknownOutcome, OSError):
            return
        owners = find_owners(obj, field.path) if field.path else []
        others = [owner for owner in owners if owner != watched.manager]
        new = wake.change.new if wake.change is not None else None
        if others and watched.manager not in owners:
            watched.rivals.update(others)
        elif owners and new is not None and obj.resource_version == str(new.version) and not wake.is_own:
            watched.rivals[watched.manager] += 1  # Another process has the same field manager.
        else:
            return  # We are the owner again, so the answer came too late.
        if watched.loop is not None and watched.loop.report_timer is not None:
            watched.loop.report_timer.cancel()
            self._report(key, watched)

    # Reports

    def _report_soon(self, key: Key, watched: _Watched, loop: Loop) -> None:
        """Report the loop now, or when the rival is known if somebody reverts our writes."""
        rewrites = watched.streak.fields.get(loop.fields[0])
        if rewrites is None or not rewrites.reverts or watched.rivals or not loop.fields[0].path:
            self._report(key, watched)
        elif loop.report_timer is None:
            watched.rival_reads = 0
            wait = 2 * self._tunings[key.controller].brake_base  # A rival that is braked too writes once meanwhile.
            loop.report_timer = asyncio.get_running_loop().call_later(wait, self._report, key, watched)

    def _report(self, key: Key, watched: _Watched) -> None:
        loop = watched.loop
        if loop is None or loop.is_reported:
            return
        loop.is_reported, loop.report_timer = True, None
        loop_field, tuning = loop.fields[0], self._tunings[key.controller]
        rewrites = watched.streak.fields.get(loop_field)
        count = max(rewrites.count if rewrites is not None else 0, int(tuning.brake_after))
        is_primary = loop_field.object == watched.primary and loop_field.path
        what = f"its {loop_field.path}" if is_primary else str(loop_field)
        others = len(loop.fields) - 1
        more = f", and {others} more field{'s' if others > 1 else ''}" if others else ""
        why, values, remedy = _explain(watched, rewrites)
        waits = f"Its passes wait {tuning.brake_base:g} s, later up to {tuning.brake_max:g} s"
        head = f"{REASON}: {count} passes in a row over {watched.primary} rewrote {what}"
        self._services.log.warning(
            "%s%s%s. %s. %s, until a pass leaves it unchanged or the object's generation changes. %s",
            head, values, more, why, waits, remedy,
        )  # fmt: skip
        about = self._find_object(watched.primary)
        if about is not None:
            note = f"{count} passes in a row rewrote {what}{more}. {why}. {waits}. {remedy}"
            self._services.recorder.record(about, REASON, note, warning=True)

    # Helpers

    def _find_object(self, ref: ObjectRef) -> Object | None:
        services = self._services.clusters[ref.cluster] if ref.cluster else self._services
        return services.watched.peek(kind(ref.api_version, ref.kind), ref.name, ref.namespace)

    def _version(self, ref: ObjectRef) -> tuple[str, str] | None:
        return self._services.watched.version(kind(ref.api_version, ref.kind), ref.name, ref.namespace)

    def _now(self) -> float:
        return self._services.world.clock.monotonic()


def _explain(watched: _Watched, rewrites: Rewrites | None) -> tuple[str, str, str]:
    """Return why the field is rewritten, its values, and the remedy."""
    old, new = (rewrites.change.old, rewrites.change.new) if rewrites is not None else (None, None)
    values = f" from {describe_value(old)} to {describe_value(new)}"
    if rewrites is None or not rewrites.reverts:
        return (
            "Each pass was woken by the write of the pass before",
            values,
            "Write only values that follow from what the pass reads: no timestamps, counters or random values",
        )
    if not rewrites.change.path:
        return (
            "Somebody else deletes or creates it in between",
            "",
            "Let only one program create and delete the object",
        )
    if not watched.rivals:
        why = "Another writer changes it back; its field manager could not be read"
    else:
        manager = watched.rivals.most_common(1)[0][0]
        same = ", another process with the same name," if manager == watched.manager else ""
        why = f"The field manager {manager}{same} changes it back"
    return why, values, "Let only one program write the field: leave it out of the other one's writes"


def _is_exempt(wake: Wake, watched: _Watched) -> bool:
    """Return whether a change of the object must not wait: a deletion, or a new generation that is not of the loop."""
    change = wake.change
    if wake.source != "primary" or change is None:
        return False
    if change.old is None or change.new is None:
        return True
    old, new = change.old.object(), change.new.object()
    if new.deleting:
        return not old.deleting
    primary = watched.primary
    return any(
        Field(primary, each.path) not in watched.streak.fields
        for each in find_changes(old, new)
        if not each.path.startswith(("metadata", "status"))
    )


def _key(record: Record, primary: ObjectRef) -> Key:
    """Return the queue's key of the pass that a record belongs to."""
    return Key(record.actor.partition("/")[2], primary.namespace, primary.name)
