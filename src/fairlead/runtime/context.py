"""What a reconcile is handed besides its object: reads from the local view, and one safe way for each write."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fairlead import writes
from fairlead.api.errors import NotFound
from fairlead.api.kinds import Kind
from fairlead.api.kinds import kind as kind_of
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.client.client import Client, Propagation
from fairlead.runtime.services import Services
from fairlead.writes import Draft, DuplicatePayload, StatusReport, Writer, defaults
from fairlead.writes.apply import ChildApply, reject_duplicate_payloads, run_concurrently
from fairlead.writes.payload import kind_of_payload
from fairlead.writes.writer import Key, LastWrite, object_key

T = TypeVar("T")


class ReadContext:
    """The local view and what goes with it; handed to timers and, if they take it, to the functions in `watches`.

    Reads see at least this process's own writes, and otherwise what the watches have brought so far.
    """

    def __init__(self, services: Services, namespace: str | None = None) -> None:
        self._services = services
        self._namespace = namespace

    def cluster(self, name: str) -> "ReadContext":
        """The same of another cluster that the operator was given (`clusters=` of a run)."""
        return ReadContext(_named(self._services, name), self._namespace)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The names of the other clusters that the operator was given."""
        return tuple(self._services.clusters)

    @property
    def dry_run(self) -> bool:
        """Whether the server checks each write and stores none, so that one which succeeds still changed nothing."""
        return self._services.dry_run

    @property
    def world(self) -> World:
        """The clock and the random source, to use instead of `time` and `random`."""
        return self._services.world

    @property
    def log(self) -> logging.Logger:
        """Lines logged inside a reconcile carry the object's key and the reconcile's id."""
        return self._services.log

    @property
    def resources(self) -> dict[str, Any]:
        """What the start-up hooks put there."""
        return self._services.resources

    @property
    def live(self) -> "LiveReader":
        """Reads that ask the server."""
        return LiveReader(self._services.client, self._namespace)

    @property
    def unguarded(self) -> Client:
        """The raw client: for eviction, scale, tokens, logs. No discipline guards what is written with it."""
        return self._services.client

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None; in the primary's namespace unless another is named. The kind must be watched."""
        return self._services.local.get(kind, name, namespace or self._namespace)

    def indexed(self, kind: Kind, name: str, value: str) -> "list[Object]":
        """The objects, in every namespace, in which the index of that name (`@op.index`) found that value."""
        return self._services.local.indexed(kind, name, value)

    def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None, everywhere: bool = False
    ) -> "list[Object]":
        """The objects of a watched kind: in the primary's namespace, in the one named, or `everywhere`."""
        return self._services.local.list(kind, None if everywhere else namespace or self._namespace, labels=labels)


class LiveReader:
    """Reads that ask the server and wait for its answer."""

    def __init__(self, client: Client, namespace: str | None) -> None:
        self._client = client
        self._namespace = namespace

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """The object as it is now, or None."""
        try:
            return await self._client.get(kind, name, namespace or self._namespace)
        except NotFound:
            return None

    async def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None, everywhere: bool = False
    ) -> list[Object]:
        """The objects as they are now."""
        within = None if everywhere else namespace or self._namespace
        return (await self._client.list(kind, within, labels=labels)).items


class WriteContext(ReadContext):
    """The writes that need no primary."""

    def __init__(self, services: Services, writer: Writer, namespace: str | None, controller: str) -> None:
        super().__init__(services, namespace)
        self._writer = writer
        self._controller = controller
        self.applied: dict[Key, bytes] = {}  # the children of this pass, and what was applied of each

    async def create(self, obj: Any) -> Object:
        """The object of that name: made if there was none, else as it is found. For what others may edit."""
        return await writes.create_only(self._writer, (await self._placed(obj))[1])

    async def delete(self, obj: Object, *, unchanged: bool = False, propagation: Propagation | None = None) -> None:
        """Delete exactly this object, not one made anew under its name; `unchanged`: only if it is as it was read."""
        await writes.delete(self._writer, _kind_of(obj), obj, unchanged=unchanged, propagation=propagation)

    async def _apply(self, kind: Kind, payload: Object, owner: Object | None, *, adopt: bool, recreate: bool) -> Object:
        key = object_key(kind, payload.name, payload.namespace)
        before = self._writer.cache.version(kind, payload.name, payload.namespace)
        known = self.applied.setdefault(key, b"")  # first of all: a child whose apply failed is still wanted
        child = ChildApply(self._writer, kind, payload, owner, adopt)
        if known not in (b"", child.digest):
            raise DuplicatePayload(child.what)
        self.applied[key] = child.digest
        try:
            live = await child.run(recreate=recreate)
        except BaseException:
            self.applied[key] = known  # what was refused may be said otherwise
            raise
        if before == (live.uid, live.resource_version):
            self._services.metrics.unchanged.labels(self._controller).inc()
        else:
            self.log.info("applied %s %s", kind.kind, live.name)
        return live

    async def _placed(self, obj: Any) -> tuple[Kind, Object]:
        """The payload in the primary's namespace, unless it names another or its kind has none."""
        plain = _plain(obj)
        kind, payload = await self._services.client.resolve(kind_of_payload(plain)), Object(plain)
        if kind.namespaced and not payload.namespace and self._namespace:
            payload = Object(payload | {"metadata": {**payload.metadata, "namespace": self._namespace}})
        return kind, payload


class ClusterContext(WriteContext):
    """Another cluster, as a pass sees it: the same reads, and the writes that make sense without an owner.

    What is applied there has no owner reference, so nothing collects or prunes it: delete it in the clean-up.
    """

    async def apply(self, obj: Any, *, adopt: bool = False, recreate: bool = False) -> Object:
        """As `Context.apply`, without an owner. Ours is what has an Apply entry of our field manager."""
        kind, payload = await self._placed(obj)
        return await self._apply(kind, payload, None, adopt=adopt, recreate=recreate)

    async def decide(self, function: Callable[[Draft], T], obj: Object, *, only: Sequence[str] | None = None) -> T:
        """As `Context.decide`, on an object of that cluster."""
        return (await writes.decide(self._writer, _kind_of(obj), obj, function, only=only)).result


class Context(WriteContext):
    """One pass over one object. There is no bare update: each thing that is written has one safe way.

    What goes wrong is raised (`ForeignObject`, `ImmutableField`, `ObjectDeleted`, `UnknownOutcome`, …) and may be
    caught; what is not caught becomes a condition and a later look.
    """

    def __init__(self, services: Services, writer: Writer, kind: Kind, obj: Object, controller: str) -> None:
        super().__init__(services, writer, obj.namespace, controller)
        self._kind = kind
        self._obj = obj
        self.report = StatusReport(obj.generation)
        self._elsewhere: dict[str, ClusterContext] = {}

    async def apply(self, obj: Any, *, owned: bool = True, adopt: bool = False, recreate: bool = False) -> Object:
        """Make a child be so, by server-side apply, and answer the live object. Nothing is sent if it is so already.

        Give exactly the fields that are yours, built from scratch: a dict, or a typed model of one. It gets the
        primary's namespace and an owner reference (not with `owned=False`). Raises `ForeignObject` when the name is
        someone else's (`adopt=True` takes over what nobody controls), `ImmutableField` when a field cannot change
        (`recreate=True` makes it anew), `DuplicatePayload` when this pass has made the child something else already.
        """
        kind, payload = await self._placed(obj)
        return await self._apply(kind, payload, self._obj if owned else None, adopt=adopt, recreate=recreate)

    async def apply_all(
        self, objs: Iterable[Any], *, owned: bool = True, adopt: bool = False, recreate: bool = False
    ) -> "list[Object]":
        """`apply` for each, side by side; the live objects in order. All are tried, then the first failure is raised.

        Two payloads of one object are refused before anything is sent.
        """
        placed = [await self._placed(obj) for obj in objs]
        reject_duplicate_payloads((payload for _, payload in placed), self._namespace)
        owner = self._obj if owned else None
        return await run_concurrently([self._apply(*each, owner, adopt=adopt, recreate=recreate) for each in placed])

    def cluster(self, name: str) -> ClusterContext:
        """Another cluster that the operator was given (`clusters=` of a run, `--cluster` of `fairlead run`)."""
        if name not in self._elsewhere:
            services = _named(self._services, name)
            writer = services.writer.with_manager(self._writer.manager)
            self._elsewhere[name] = ClusterContext(services, writer, self._namespace, self._controller)
        return self._elsewhere[name]

    def children(self, kind: Kind) -> "list[Object]":
        """The objects of a watched kind that name the primary as an owner."""
        return self._services.local.owned_by(kind, self._obj.uid)

    async def decide(
        self, function: Callable[[Draft], T], obj: Object | None = None, *, only: Sequence[str] | None = None
    ) -> T:
        """Let a pure function decide on changes to the object (the primary unless another is given).

        The changes land only while all that it read still holds; else it runs again on what is there now, so the
        answer is the winner's: a loser sees the other's decision and keeps it.
        """
        kind = self._kind if obj is None else _kind_of(obj)
        decided = await writes.decide(self._writer, kind, self._obj if obj is None else obj, function, only=only)
        return decided.result

    async def default(self, **fields: Any) -> Object:
        """Fill in what the user left out of the primary (`spec={"replicas": 1}`); what is set, by anyone, stays."""
        return await defaults.fill(self._writer, self._kind, self._obj, fields)

    async def migrate(self, obj: Object, *, fields: Sequence[str], managers: Sequence[str]) -> None:
        """Make fields that this controller once wrote by update its own by apply: then leaving one out removes it.

        Only the `fields` named move, and only from the entries of those field `managers`. Looks live once for each
        object and process.
        """
        kind, done = _kind_of(obj), (self._writer.manager, f"migrated {fields} of {managers}")
        memo = self._writer.last_writes_of(kind, obj.name, obj.namespace).get(done)
        if memo is None or memo.uid != obj.uid:
            await writes.migrate(self._writer, kind, obj, fields=fields, managers=managers)
            self._writer.last_writes_of(kind, obj.name, obj.namespace)[done] = LastWrite(obj.uid)

    def status(self, **fields: Any) -> None:
        """Fields of the primary's status, each replaced whole, None to take it away. Written once, after the pass."""
        self.report.set(**fields)

    def condition(self, type: str, status: bool | str | None, reason: str = "", message: str = "") -> None:  # noqa: A002
        """A condition of the primary; None is Unknown. Written once, after the pass; other writers' are untouched."""
        # the API wants a reason, and the type is the best one when there is nothing to say
        self.report.condition(type, status, reason or type, message)

    def event(self, reason: str, note: str, *, warning: bool = False) -> None:
        """An Event about the primary. Best effort, in the background; equal ones are counted."""
        self._services.recorder.record(self._obj, reason, note, warning=warning)


def _named(services: Services, name: str) -> Services:
    try:
        return services.clusters[name]
    except KeyError:
        raise LookupError(f"there is no cluster {name!r} in this run: give it one, clusters={{{name!r}: …}}") from None


def _plain(obj: Any) -> Mapping[str, Any]:
    """A dict as it is; a typed model (pydantic, msgspec, dataclass) as the dict that it stands for."""
    if isinstance(obj, Mapping):
        return obj
    if hasattr(obj, "model_dump"):
        return dict(obj.model_dump(mode="json", by_alias=True, exclude_none=True))
    plain: Mapping[str, Any] = msgspec.to_builtins(obj, str_keys=True, order="deterministic")
    return plain


def _kind_of(obj: Object) -> Kind:
    return kind_of(obj.api_version, obj.kind)
