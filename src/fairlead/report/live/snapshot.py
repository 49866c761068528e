"""What an operator does now, from its run and from the memory of its passes."""

from collections.abc import Iterator
from itertools import islice

from fairlead.api.errors import UserError
from fairlead.api.history import FieldChange, ObjectRef, Record
from fairlead.api.history_text import describe, describe_cause
from fairlead.report.live import shapes
from fairlead.report.pass_memory import PassMemory, RememberedObject, RememberedPass
from fairlead.runtime.operator import Controller
from fairlead.runtime.pausing import PAUSED_NOTE, is_paused
from fairlead.runtime.running import Running
from fairlead.runtime.services import Key

MAX_RUNNING = 100
MAX_LIMIT = 200
"""The objects of one page of the list, at most."""


class ObjectNotFound(UserError):
    """No controller has this kind, no object has this name, or several objects have it."""


class OperatorSnapshot:
    """Describes a run of an operator. Every method describes the moment of its call."""

    def __init__(self, running: Running, memory: PassMemory) -> None:
        self._running, self._memory = running, memory
        self._controllers = {controller.name: controller for controller in running.operator.controllers.values()}

    def overview(self) -> shapes.Overview:
        """Return the controllers, their queues and the passes in flight."""
        running = self._running
        counts = {name: dict.fromkeys(shapes.QUEUE_STATES, 0) for name in self._controllers}
        for key, state in running.services.queue.states():
            counts[key.controller][state.name] += 1
        failing = dict.fromkeys(self._controllers, 0)
        for key in running.services.failures:
            failing[key.controller] += 1
        passes = self._memory.running_passes()
        return shapes.Overview(
            operator=running.operator.name,
            time=self._now(),
            is_leading=running.is_leading,
            problems=running.readiness_problems(),
            controllers=[
                shapes.Controller(
                    name=name,
                    kind=controller.kind.kind,
                    api_version=controller.kind.api_version,
                    concurrency=running.tunings[name].concurrency,
                    queue=counts[name],
                    failing=failing[name],
                )
                for name, controller in self._controllers.items()
            ],
            running=[self._pass(each) for each in passes[:MAX_RUNNING]],
            more_running=max(0, len(passes) - MAX_RUNNING),
            memory=shapes.Memory(
                objects=len(self._memory),
                bytes=self._memory.size,
                passes_per_object=self._memory.passes_per_object,
            ),
        )

    def objects(
        self, *, search: str = "", state: str = "", controller: str = "", offset: int = 0, limit: int = 50
    ) -> shapes.ObjectList:
        """Return a page of the objects that had a pass. The words of `search` are parts of kind, namespace or name.

        `state` is a state of the queue, `idle`, or `failing`.
        """
        limit = min(limit, MAX_LIMIT)
        matches = [each for each in self._search(search.lower().split(), controller) if self._has_state(each, state)]
        page = islice(matches, offset, offset + limit)
        return shapes.ObjectList(
            total=len(matches), offset=offset, limit=limit, items=[self._summary(each.object, each) for each in page]
        )

    def object(self, kind: str, name: str, namespace: str | None = None) -> shapes.ObjectDetails:
        """Return the passes over one object.

        `kind` is the kind, its plural or the name of the controller. The namespace may be left out if no other object
        of the kind has the same name.

        Raises: ObjectNotFound.
        """
        ref = self._resolve(kind, name, namespace)
        controller = self._controller_of(ref)
        remembered = self._memory.find(ref)
        cached = self._running.services.watched.peek(controller.kind, ref.name, ref.namespace)
        notes = [f"{what}: {problem}" for what, problem in self._running.readiness_problems().items()]
        if not self._running.is_leading:
            notes.append("This process is not the leader, or its caches are not filled yet: it starts no passes")
        if cached is not None and is_paused(cached):
            notes.append(f"Paused. {PAUSED_NOTE}")
        history = [self._pass(each) for each in self._memory.running_passes() if each.woken.object == ref]
        history += [self._pass(each) for each in (remembered.passes() if remembered is not None else ())]
        return shapes.ObjectDetails(
            operator=self._running.operator.name,
            time=self._now(),
            summary=self._summary(ref, remembered),
            is_cached=cached is not None,
            notes=notes,
            history=history,
        )

    def _now(self) -> float:
        return self._running.services.world.clock.now()

    def _search(self, words: list[str], controller: str) -> Iterator[RememberedObject]:
        for remembered in self._memory.objects():
            ref = remembered.object
            if controller and self._controller_of(ref).name != controller:
                continue
            if words:
                text = f"{ref.kind} {ref.namespace or ''}/{ref.name}".lower()
                if not all(word in text for word in words):
                    continue
            yield remembered

    def _has_state(self, remembered: RememberedObject, wanted: str) -> bool:
        if not wanted:
            return True
        if wanted == "failing":
            return remembered.failures > 0
        state = self._running.services.queue.state(self._key(remembered.object))
        return (state.name if state is not None else "idle") == wanted

    def _resolve(self, kind: str, name: str, namespace: str | None) -> ObjectRef:
        controllers = [each for each in self._controllers.values() if kind.lower() in _names(each)]
        if not controllers:
            known = ", ".join(each.kind.kind for each in self._controllers.values()) or "nothing"
            raise ObjectNotFound(f"{self._running.operator.name} does not reconcile {kind}: it reconciles {known}")
        found: list[ObjectRef] = []
        for controller in controllers:
            found += self._find(controller, name, namespace)
        if not found:
            where = f" in the namespace {namespace}" if namespace else ""
            raise ObjectNotFound(
                f"{self._running.operator.name} knows no {controllers[0].kind.kind} {name}{where}: "
                f"check the name, and the namespaces that the operator watches"
            )
        if len(found) > 1:
            places = ", ".join(sorted(ref.namespace or ref.api_version for ref in found)[:10])
            raise ObjectNotFound(f"{len(found)} objects are called {controllers[0].kind.kind} {name}, in {places}: "
                                 f"choose one by its namespace")  # fmt: skip
        return found[0]

    def _find(self, controller: Controller, name: str, namespace: str | None) -> list[ObjectRef]:
        """Return the objects of this name that are in the cache, or that had a pass."""
        kind, watched = controller.kind, self._running.services.watched
        namespaces: set[str | None] = set()
        if watched.is_watched(kind):  # It is not while the server cannot be reached.
            namespaces |= {place for place, cached in watched.reader(kind).object_keys() if cached == name}
        for remembered in self._memory.objects():
            ref = remembered.object
            if ref.name == name and (ref.api_version, ref.kind) == kind.key:
                namespaces.add(ref.namespace)
        if namespace is not None:
            namespaces &= {namespace, None}  # None: the kind is cluster-scoped.
        return [ObjectRef(kind.kind, place, name, kind.api_version) for place in namespaces]

    def _controller_of(self, ref: ObjectRef) -> Controller:
        return self._running.operator.controllers[ref.api_version, ref.kind]

    def _key(self, ref: ObjectRef) -> Key:
        return Key(self._controller_of(ref).name, ref.namespace, ref.name)

    def _summary(self, ref: ObjectRef, remembered: RememberedObject | None) -> shapes.ObjectSummary:
        state = self._running.services.queue.state(self._key(ref))
        last = next(remembered.passes(), None) if remembered is not None else None
        return shapes.ObjectSummary(
            controller=self._controller_of(ref).name,
            object=_ref(ref),
            state=state.name if state is not None else "idle",
            next_look=state.seconds if state is not None and state.name in ("delayed", "backoff", "held") else None,
            passes=remembered.count if remembered is not None else 0,
            failures=remembered.failures if remembered is not None else 0,
            last_pass=self._pass(last, with_steps=False) if last is not None else None,
        )

    def _pass(self, remembered: RememberedPass, *, with_steps: bool = True) -> shapes.Pass:
        woken, ended = remembered.woken, remembered.ended
        assert woken.object is not None
        causes = [describe_cause(cause, woken.object.namespace) for cause in woken.causes]
        if woken.more_causes:
            causes.append(f"{woken.more_causes} more")
        described = shapes.Pass(
            id=woken.pass_id,
            controller=self._controller_of(woken.object).name,
            object=_ref(woken.object),
            started=woken.time,
            causes=list(dict.fromkeys(causes)),
            steps=[_step(step) for step in remembered.steps] if with_steps else [],
            more_steps=remembered.more_steps,
        )
        if ended is None:
            described.is_running = True
            described.seconds = max(0.0, self._now() - woken.time)
        else:
            described.outcome, described.reason, described.message = ended.outcome, ended.reason, ended.message
            described.seconds, described.next_look = ended.seconds, ended.next_look
        return described


def _names(controller: Controller) -> set[str]:
    kind = controller.kind
    names = {controller.name, kind.kind.lower(), kind.plural}
    return names | {f"{name}.{kind.group}" for name in names}


def _ref(ref: ObjectRef) -> shapes.Ref:
    return shapes.Ref(
        kind=ref.kind, namespace=ref.namespace, name=ref.name, api_version=ref.api_version, cluster=ref.cluster
    )


def _step(record: Record) -> shapes.Step:
    assert record.point in ("read", "written", "skipped")
    return shapes.Step(
        point=record.point,
        time=record.time,
        verb=record.verb,
        object=_ref(record.object) if record.object is not None else None,
        text=describe(record),
        outcome=record.outcome,
        message=record.message,
        version=record.version,
        version_before=record.version_before,
        source=record.source,
        subresource=record.subresource,
        is_dry_run=record.is_dry_run,
        changes=[_change(change) for change in record.fields],
    )


def _change(change: FieldChange) -> shapes.Change:
    return shapes.Change(path=change.path, old=change.old, new=change.new)
