"""The context that a handler receives besides its object: reads from the cache, and one safe method for each write."""

import functools
import inspect
import logging
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from fairlead import writes
from fairlead.api.errors import NotFound
from fairlead.api.kinds import Kind
from fairlead.api.kinds import kind as kind_of
from fairlead.api.objects import Object
from fairlead.api.source_locations import line_location, user_frame, with_location
from fairlead.api.world import World
from fairlead.client.client import Client, Propagation
from fairlead.runtime.handlers import HandlerError
from fairlead.runtime.services import Services
from fairlead.writes import Draft, DuplicatePayload, StatusReport, Writer, defaults
from fairlead.writes.apply import ChildApply, reject_duplicate_payloads, run_concurrently
from fairlead.writes.payload import kind_of_payload
from fairlead.writes.writer import Key, LastWrite, object_key

T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Coroutine[Any, Any, Any]])


class ReadContext:
    """Reads from the operator's cache. Timers receive it, and `watches=` functions that take a second argument.

    Guarantees: reads see this process's own writes.

    Does not guarantee: that a read sees a write of another process. The watch may not have delivered it yet; use
    `live` where that matters.
    """

    def __init__(self, services: Services, namespace: str | None = None) -> None:
        self._services = services
        self._namespace = namespace

    def cluster(self, name: str) -> "ReadContext":
        """Return the read context of another cluster of this run (`clusters=`).

        Raises: LookupError if the run has no cluster of that name.
        """
        return ReadContext(_services_of_cluster(self._services, name), self._namespace)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The names of the other clusters of this run."""
        return tuple(self._services.clusters)

    @property
    def dry_run(self) -> bool:
        """Whether the server validates each write and does not store it."""
        return self._services.dry_run

    @property
    def world(self) -> World:
        """The clock and the random source. Use them instead of `time` and `random`, so that tests control both."""
        return self._services.world

    @property
    def log(self) -> logging.Logger:
        """The operator's logger. A line that is logged in a pass carries the object's key and the pass's id."""
        return self._services.log

    @property
    def resources(self) -> dict[str, Any]:
        """The dict that the startup hooks filled, such as a connection to a database."""
        return self._services.resources

    @property
    def live(self) -> "LiveReader":
        """Reads that ask the server instead of the cache."""
        return LiveReader(self._services.client, self._namespace)

    @property
    def unguarded(self) -> Client:
        """The plain client, for eviction, scale, tokens and logs. Its writes have no protection against conflicts."""
        return self._services.client

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return an object from the cache, or None if it does not exist.

        The namespace is that of the reconciled object unless another is given.

        Raises: NotWatched if the operator does not watch the kind. ValueError if the namespace is missing.
        """
        namespace = namespace or self._namespace
        return self._services.watched.reader(kind, namespace).get(name, namespace)

    def indexed(self, kind: Kind, name: str, value: str) -> "list[Object]":
        """Return the objects of all namespaces for which the index `name` (see `@op.index`) contains `value`.

        Raises: NotWatched if the operator does not watch the kind.
        """
        return self._services.watched.reader(kind).indexed(name, value)

    def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None, everywhere: bool = False
    ) -> "list[Object]":
        """Return the objects of a watched kind from the cache.

        They are those of the reconciled object's namespace, of the given namespace, or of all with `everywhere`.
        `labels` is a selector as kubectl takes it.

        Raises: NotWatched if the operator does not watch the kind or the namespace.
        """
        namespace = None if everywhere else namespace or self._namespace
        return self._services.watched.reader(kind, namespace).list(namespace, labels=labels)


class LiveReader:
    """Reads that ask the server and wait for its answer.

    Guarantees: the answer is at least as new as every write that was acknowledged before the call.

    Raises: `fl.ApiError` if the server rejects the request, OSError if it cannot be reached.
    """

    def __init__(self, client: Client, namespace: str | None) -> None:
        self._client = client
        self._namespace = namespace

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return the object as the server has it now, or None if it does not exist."""
        try:
            return await self._client.get(kind, name, namespace or self._namespace)
        except NotFound:
            return None

    async def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None, everywhere: bool = False
    ) -> list[Object]:
        """Return the objects as the server has them now."""
        within = None if everywhere else namespace or self._namespace
        return (await self._client.list(kind, within, labels=labels)).items


def _must_await(method: M) -> M:
    """Decorate a write, so that a call without `await` is reported with the line of the call."""

    @functools.wraps(method)
    def start(self: "WriteContext", *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        coroutine = method(self, *args, **kwargs)
        frame = user_frame(sys._getframe(1))  # noqa: SLF001 - the documented way to look at callers
        if frame is not None:
            self.calls.append((coroutine, method.__name__, frame.f_code.co_filename, frame.f_lineno))
        return coroutine

    return cast("M", start)


class WriteContext(ReadContext):
    """The writes that need no owner."""

    def __init__(self, services: Services, writer: Writer, namespace: str | None, controller: str) -> None:
        super().__init__(services, namespace)
        self._writer = writer
        self._controller = controller
        self.applied: dict[Key, bytes] = {}
        """The digest of each payload that this pass applied."""
        self.calls: list[tuple[Coroutine[Any, Any, Any], str, str, int]] = []
        """The writes that this pass started, each with its name, file and line."""

    @_must_await
    async def create(self, obj: Any) -> Object:
        """Create an object if none of that name exists, and return the live object. Never changes an existing one.

        Use it for objects that other people may edit afterwards.

        Raises: `fl.ApiError` if the server rejects the object, `fl.UnknownOutcome` if its answer was lost.
        """
        return await writes.create_only(self._writer, (await self._resolve_payload(obj))[1])

    @_must_await
    async def delete(self, obj: Object, *, unchanged: bool = False, propagation: Propagation | None = None) -> None:
        """Delete an object that was read before. Succeeds if it does not exist any more.

        Guarantees: an object that was recreated under the same name is not deleted. With `unchanged`, the object is
        deleted only if it has not changed since it was read.

        Raises: `fl.errors.ObjectChanged` with `unchanged`, `fl.ApiError`, `fl.UnknownOutcome`.
        """
        await writes.delete(self._writer, _kind_of(obj), obj, unchanged=unchanged, propagation=propagation)

    def check_awaited(self, error: Exception | None = None) -> None:
        """Raise HandlerError if the handler started a write and never awaited it.

        If the handler failed with `error`, the error stays unless the coroutine itself caused it.
        """
        forgotten = [call for call in self.calls if inspect.getcoroutinestate(call[0]) == inspect.CORO_CREATED]
        self.calls.clear()
        for coroutine, *_ in forgotten:
            coroutine.close()  # Otherwise Python warns about it a second time.
        is_cause = error is None or (isinstance(error, AttributeError | TypeError) and "coroutine" in str(error))
        if forgotten and is_cause:
            _, name, filename, line = forgotten[0]
            raise HandlerError(
                with_location(
                    line_location(filename, line),
                    f"the result of {name}(…) was never awaited, so nothing was written: write `await` before the call",
                )
            ) from error

    async def _apply(self, kind: Kind, payload: Object, owner: Object | None, *, adopt: bool, recreate: bool) -> Object:
        key = object_key(kind, payload.name, payload.namespace)
        before = self._writer.cache.version(kind, payload.name, payload.namespace)
        # The key is recorded before the apply: a child whose apply fails must not be pruned.
        previous_digest = self.applied.setdefault(key, b"")
        child = ChildApply(self._writer, kind, payload, owner, adopt)
        if previous_digest not in (b"", child.digest):
            raise DuplicatePayload(child.what)
        self.applied[key] = child.digest
        try:
            live = await child.run(recreate=recreate)
        except BaseException:
            self.applied[key] = previous_digest  # The handler may apply another payload instead of the rejected one.
            raise
        if before == (live.uid, live.resource_version):
            self._services.metrics.unchanged.labels(self._controller).inc()
        else:
            self.log.info("applied %s %s", kind.kind, live.name)
        return live

    async def _resolve_payload(self, obj: Any) -> tuple[Kind, Object]:
        """Return the payload with a namespace: its own, or that of the reconciled object if its kind is namespaced."""
        plain = _to_dict(obj)
        kind, payload = await self._services.client.resolve(kind_of_payload(plain)), Object(plain)
        if kind.namespaced and not payload.namespace and self._namespace:
            payload = Object(payload | {"metadata": {**payload.metadata, "namespace": self._namespace}})
        return kind, payload


class ClusterContext(WriteContext):
    """Another cluster in a pass (`ctx.cluster("edge")`): the same reads, and the writes that need no owner.

    Does not guarantee: cleanup. Objects that are applied there have no owner reference, so neither the garbage
    collector nor pruning deletes them. Delete them in the `@op.cleanup` handler.
    """

    @_must_await
    async def apply(self, obj: Any, *, adopt: bool = False, recreate: bool = False) -> Object:
        """Apply an object as `Context.apply` does, without an owner.

        An object counts as ours if our field manager has an Apply entry in its managedFields.

        Raises: the same errors as `Context.apply`.
        """
        kind, payload = await self._resolve_payload(obj)
        return await self._apply(kind, payload, None, adopt=adopt, recreate=recreate)

    @_must_await
    async def decide(self, function: Callable[[Draft], T], obj: Object, *, only: Sequence[str] | None = None) -> T:
        """Decide as `Context.decide` does, on an object of that cluster."""
        return (await writes.decide(self._writer, _kind_of(obj), obj, function, only=only)).result


class Context(WriteContext):
    """What a reconcile or cleanup handler receives besides its object, for one pass.

    There is no plain update: each kind of write has one method that is safe against concurrent writers.

    Guarantees: every error is raised in the handler, which may catch it. An error that leaves the handler becomes the
    Ready condition, a log line and a later retry.

    Does not guarantee: that the object is the newest version. It comes from the cache; a write that depends on its
    content fails with a conflict and the pass runs again.

    Example:
        @op.reconcile(Greeting, owns=[fl.ConfigMap])
        async def greet(obj: fl.Object, ctx: fl.Context) -> None:
            await ctx.apply(fl.ConfigMap(obj.name, data={"text": f"Hello, {obj.spec['who']}"}))
    """

    def __init__(self, services: Services, writer: Writer, kind: Kind, obj: Object, controller: str) -> None:
        super().__init__(services, writer, obj.namespace, controller)
        self._kind = kind
        self._obj = obj
        self.report = StatusReport(obj.generation)
        """The status fields and conditions that this pass has set so far."""
        self._cluster_contexts: dict[str, ClusterContext] = {}

    @_must_await
    async def apply(self, obj: Any, *, owned: bool = True, adopt: bool = False, recreate: bool = False) -> Object:
        """Apply a child by server-side apply and return the live object.

        Give exactly the fields that this controller sets, built from scratch: a dict, or a pydantic, msgspec or
        dataclass model. The child gets the namespace of the reconciled object and, unless `owned=False`, an owner
        reference.

        Guarantees: nothing is sent if the cached object already has these values. Fields of other field managers stay.
        A field that an earlier pass applied and this one leaves out is removed. An object that belongs to somebody
        else is not changed.

        Does not guarantee: that the values last. Another writer may change them; the next pass applies them again.

        Raises:
            fl.ForeignObject: an object of that name exists and is not ours. `adopt=True` takes over an object that has
                no controller.
            fl.ImmutableField: the server does not allow the change. `recreate=True` deletes and recreates the object.
            fl.errors.DuplicatePayload: this pass applied a different payload for the same child.
            fl.ApiError, fl.UnknownOutcome: the server rejected the request, or its answer was lost.

        Example:
            deployment = await ctx.apply(fl.Deployment(obj.name, spec=deployment_spec(obj)))
        """
        kind, payload = await self._resolve_payload(obj)
        return await self._apply(kind, payload, self._obj if owned else None, adopt=adopt, recreate=recreate)

    @_must_await
    async def apply_all(
        self, objs: Iterable[Any], *, owned: bool = True, adopt: bool = False, recreate: bool = False
    ) -> "list[Object]":
        """Apply several children concurrently, as `apply` does, and return the live objects in the same order.

        Guarantees: every child is attempted, then the first error is raised. Two payloads for the same child are
        rejected before anything is sent.

        Raises: the same errors as `apply`.
        """
        resolved = [await self._resolve_payload(obj) for obj in objs]
        reject_duplicate_payloads((payload for _, payload in resolved), self._namespace)
        owner = self._obj if owned else None
        return await run_concurrently(
            [self._apply(kind, payload, owner, adopt=adopt, recreate=recreate) for kind, payload in resolved]
        )

    def cluster(self, name: str) -> ClusterContext:
        """Return the context of another cluster of this run (`clusters=`, or `--cluster` of `fairlead run`).

        Raises: LookupError if the run has no cluster of that name.
        """
        if name not in self._cluster_contexts:
            services = _services_of_cluster(self._services, name)
            writer = services.writer.with_manager(self._writer.manager)
            context = ClusterContext(services, writer, self._namespace, self._controller)
            context.calls = self.calls
            self._cluster_contexts[name] = context
        return self._cluster_contexts[name]

    def children(self, kind: Kind) -> "list[Object]":
        """Return the objects of a watched kind that have an owner reference to the reconciled object.

        Raises: NotWatched if the operator does not watch the kind.
        """
        return self._services.watched.reader(kind).owned_by(self._obj.uid)

    @_must_await
    async def decide(
        self, function: Callable[[Draft], T], obj: Object | None = None, *, only: Sequence[str] | None = None
    ) -> T:
        """Let a pure function read and change a draft of the object, write the changes, and return its result.

        The object is the reconciled one unless another is given. `only` limits the fields that may change.

        Guarantees: the changes are stored only if every value that the function read is still the same on the server.
        Otherwise the function runs again on the current object. So exactly one of several processes wins, and the
        others see its decision.

        Does not guarantee: that the function runs once. It must not have side effects, and must not use the time or
        random values: capture those before.

        Raises:
            fl.errors.DecisionContention: the values changed before each of many attempts.
            fl.errors.ImpureDecision: the function is not pure.
            fl.errors.UndeclaredField: the function changed a field that is not in `only`.
            fl.ObjectDeleted, fl.ApiError, fl.UnknownOutcome.

        Example:
            port = await ctx.decide(lambda draft: draft.status.setdefault("port", 8080))
        """
        kind = self._kind if obj is None else _kind_of(obj)
        decided = await writes.decide(self._writer, kind, self._obj if obj is None else obj, function, only=only)
        return decided.result

    @_must_await
    async def default(self, **fields: Any) -> Object:
        """Set fields of the reconciled object that nobody has set, and return the live object.

        Guarantees: a value that anybody has set stays.

        Raises: `fl.ObjectDeleted`, `fl.ApiError`, `fl.UnknownOutcome`.

        Example:
            obj = await ctx.default(spec={"replicas": 1})
        """
        return await defaults.fill(self._writer, self._kind, self._obj, fields)

    @_must_await
    async def migrate(self, obj: Object, *, fields: Sequence[str], managers: Sequence[str]) -> None:
        """Take over `fields` that this controller once wrote by update, so that apply owns them.

        After that, a field that the payload leaves out is removed.

        Guarantees: only the named fields move, and only from the managedFields entries of the named field managers.
        The object is read live once per process.

        Raises: `fl.ObjectDeleted`, `fl.ApiError`, `fl.UnknownOutcome`.
        """
        kind, done = _kind_of(obj), (self._writer.manager, f"migrated {fields} of {managers}")
        previous = self._writer.last_writes_of(kind, obj.name, obj.namespace).get(done)
        if previous is None or previous.uid != obj.uid:
            await writes.migrate(self._writer, kind, obj, fields=fields, managers=managers)
            self._writer.last_writes_of(kind, obj.name, obj.namespace)[done] = LastWrite(obj.uid)

    def status(self, **fields: Any) -> None:
        """Set fields of the reconciled object's status. A value replaces the whole field; None removes it.

        Guarantees: all fields and conditions of a pass are written in one request after it, also if it raises an
        outcome or an error. Nothing is sent if the status already has these values.

        Does not guarantee: a write after a conflict. That pass read an old object and runs again.
        """
        self.report.set(**fields)

    def condition(self, type: str, status: bool | str | None, reason: str = "", message: str = "") -> None:  # noqa: A002
        """Set a condition of the reconciled object. A status of None means Unknown.

        Guarantees: it is written together with the status, and conditions of other writers stay as they are.
        """
        # The API requires a reason. Without one, the type says the most.
        self.report.condition(type, status, reason or type, message)

    def event(self, reason: str, note: str, *, warning: bool = False) -> None:
        """Record an Event about the reconciled object. Equal Events are counted in one.

        Does not guarantee: that the Event is written. Events are written in the background and dropped on failure.
        """
        self._services.recorder.record(self._obj, reason, note, warning=warning)


def _services_of_cluster(services: Services, name: str) -> Services:
    try:
        return services.clusters[name]
    except KeyError:
        raise LookupError(f"this run has no cluster {name!r}: add it with clusters={{{name!r}: …}}") from None


def _to_dict(obj: Any) -> Mapping[str, Any]:
    """Return a dict as it is, and a model (pydantic, msgspec, dataclass) as a dict."""
    if isinstance(obj, Mapping):
        return obj
    if hasattr(obj, "model_dump"):
        return dict(obj.model_dump(mode="json", by_alias=True, exclude_none=True))
    plain: Mapping[str, Any] = msgspec.to_builtins(obj, str_keys=True, order="deterministic")
    return plain


def _kind_of(obj: Object) -> Kind:
    return kind_of(obj.api_version, obj.kind)
