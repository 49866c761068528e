"""The context that a handler receives besides its object: reads from the cache, and one safe method for each write."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fairlead import writes
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.source_locations import caller_location, with_location
from fairlead.cache import CacheReader
from fairlead.runtime.handlers import HandlerError
from fairlead.runtime.live_copy import LiveCopy
from fairlead.runtime.operator import Controller
from fairlead.runtime.read_context import record_list, services_of_cluster
from fairlead.runtime.services import Services
from fairlead.runtime.watched_kinds import NotWatched
from fairlead.runtime.write_context import ClusterContext, WriteContext, declared_kind, must_await
from fairlead.writes import Draft, StatusReport, Writer, defaults
from fairlead.writes.apply import reject_duplicate_payloads, run_concurrently
from fairlead.writes.prune import find_unneeded, must_be_named
from fairlead.writes.writer import LastWrite, object_key

T = TypeVar("T")


class Context(WriteContext):
    """The second argument of a reconcile or cleanup handler: reads, and one safe method for each kind of write.

    There is no plain update. Each method is safe against concurrent writers.

    Guarantees: every error is raised in the handler, which may catch it. An error that leaves the handler becomes the
    Ready condition, a log line and a later retry.

    Does not guarantee: that the object is the newest version, because it comes from the cache. If a write depends on
    content that has changed, the write fails with a conflict and the pass runs again.

    Example:
        @op.reconcile(Greeting, owns=[fl.ConfigMap])
        async def greet(obj: fl.Object, ctx: fl.Context) -> None:
            await ctx.apply(fl.ConfigMap(obj.name, data={"text": f"Hello, {obj.spec['who']}"}))
    """

    def __init__(self, services: Services, writer: Writer, controller: Controller, obj: Object) -> None:
        super().__init__(services, writer, obj.namespace, controller.name)
        self._kind = controller.kind
        self._owned_kinds = tuple(source.kind for source in controller.owns)
        self._obj = obj
        self._pruned_kinds: set[tuple[str, str]] = set()
        self.report = StatusReport(obj.generation)
        """The status fields and conditions that this pass has set so far."""
        self._live_copies: dict[tuple[tuple[str, str], str | None], LiveCopy] = {}
        self._cluster_contexts: dict[str, ClusterContext] = {}

    @must_await
    async def apply(self, obj: Any, *, owned: bool = True, adopt: bool = False, recreate: bool = False) -> Object:
        """Apply a child by server-side apply and return the stored object.

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
        if owned:
            self._reject_apply_after_prune(kind, payload)
        return await self._apply(kind, payload, self._obj if owned else None, adopt=adopt, recreate=recreate)

    @must_await
    async def apply_all(
        self,
        objs: Iterable[Any],
        *,
        owned: bool = True,
        adopt: bool = False,
        recreate: bool = False,
        complete: bool = False,
    ) -> "list[Object]":
        """Apply several children concurrently, as `apply` does, and return the stored objects in the same order.

        `complete=True` says that this pass applies no further children: `prune()` follows. An empty set then deletes
        every child of the kinds that `prune()` covers.

        Guarantees: every child is attempted, then the first error is raised. Two payloads for the same child are
        rejected before anything is sent. After an error nothing is pruned.

        Raises: the same errors as `apply`. ValueError for `complete=True` with `owned=False`.
        """
        if complete and not owned:
            raise ValueError(
                "complete=True prunes owned children only: leave out owned=False, or delete with ctx.delete"
            )
        resolved = [await self._resolve_payload(obj) for obj in objs]
        reject_duplicate_payloads((payload for _, payload in resolved), self._namespace)
        if owned:
            for kind, payload in resolved:
                self._reject_apply_after_prune(kind, payload)
        owner = self._obj if owned else None
        live = await run_concurrently(
            [self._apply(kind, payload, owner, adopt=adopt, recreate=recreate) for kind, payload in resolved]
        )
        if complete:
            await self._prune(())
        return live

    @must_await
    async def prune(self, *kinds: Kind) -> "list[Object]":
        """Delete the children that earlier passes applied and this pass did not, and return them.

        Call it after the last apply of these kinds. Without kinds, it prunes every kind of `owns=` except
        PersistentVolumeClaim, Secret, Namespace and CustomResourceDefinition, which must be named.

        Guarantees: nothing is deleted in a pass that does not reach this statement. A child is deleted only if this
        controller applied it for this object and it has not changed since it was read. A child whose apply failed in
        this pass stays.

        Does not guarantee: the deletion of a child that the cache does not contain yet. A later pass deletes it.

        Raises: `fl.errors.NotWatched` if the operator does not watch the kind. `fl.ApiError`, `fl.UnknownOutcome`.

        Example:
            await ctx.apply_all(fl.ConfigMap(name, data=page) for name, page in obj.spec["pages"].items())
            await ctx.prune(fl.ConfigMap)
        """
        return await self._prune(kinds)

    async def _prune(self, kinds: Sequence[Kind]) -> "list[Object]":
        deleted = []
        for kind in kinds or [kind for kind in self._owned_kinds if not must_be_named(kind)]:
            self._pruned_kinds.add(kind.group_kind)
            children, keep = self._children_not_applied(kind)
            for child in await writes.prune(self._writer, self._obj, kind, children, keep):
                self.log.info("pruned %s %s: an earlier pass applied it and this pass did not", child.kind, child.name)
                deleted.append(child)
        return deleted

    def unpruned_children(self) -> "list[Object]":
        """Return the children of ours that this pass did not apply, of the owned kinds that it did not prune."""
        return [
            child
            for kind in self._owned_kinds
            if kind.group_kind not in self._pruned_kinds
            for child in find_unneeded(self._writer, self._obj, kind, *self._children_not_applied(kind))
        ]

    def _children_not_applied(self, kind: Kind) -> "tuple[list[Object], list[tuple[str | None, str]]]":
        """Return the cached children that this pass did not apply, and (namespace, name) of those that it did."""
        # Compared by group and kind: the applied version may differ from the watched one.
        applied = [
            (namespace, name)
            for group, kind_name, namespace, name in self.applied
            if (group, kind_name) == kind.group_kind
        ]
        return self._reader(kind, self._namespace).owned_by(self._obj.uid, exclude=applied), applied

    def _reject_apply_after_prune(self, kind: Kind, payload: Object) -> None:
        """Raise HandlerError for a child that the prune statement of this pass has just deleted, or would next time."""
        is_late = kind.group_kind in self._pruned_kinds
        if is_late and object_key(kind, payload.name, payload.namespace) not in self.applied:
            raise HandlerError(
                with_location(
                    caller_location(),
                    f"{kind.kind} {payload.name} is applied after {kind.kind} was pruned, so every pass would delete "
                    f"and recreate it: apply all children first, then prune",
                )
            )

    def cluster(self, name: str) -> ClusterContext:
        """Return the context of another cluster of this run (`clusters=`, or `--cluster` of `fairlead run`).

        Raises: LookupError if the run has no cluster of that name.
        """
        if name not in self._cluster_contexts:
            services = services_of_cluster(self._services, name)
            writer = services.writer.with_manager(self._writer.manager)
            context = ClusterContext(services, writer, self._namespace, self._controller)
            context.calls = self.calls
            self._cluster_contexts[name] = context
        return self._cluster_contexts[name]

    def _reader(self, kind: Kind, namespace: str | None) -> CacheReader | LiveCopy:
        return self._live_copies.get((kind.key, namespace)) or super()._reader(kind, namespace)

    async def copy_live(self, missing: NotWatched) -> bool:
        """Read the objects from the server that a read did not find in the cache. Return False if that was done before.

        Later reads in this pass return them.
        """
        scope = missing.kind.key, missing.namespace
        if scope in self._live_copies:
            return False
        self._live_copies[scope] = LiveCopy(
            await self.live.list(missing.kind, missing.namespace, everywhere=not missing.namespace)
        )
        return True

    def children(self, kind: Kind) -> "list[Object]":
        """Return the objects of a watched kind that have an owner reference to the reconciled object.

        Raises: NotWatched if the operator does not watch the kind.
        """
        objects = self._reader(kind, self._namespace).owned_by(self._obj.uid)
        record_list(self._services, "cache", kind, self._namespace, objects)
        return objects

    @must_await
    async def decide(
        self, function: Callable[[Draft], T], obj: Object | None = None, *, only: Sequence[str] | None = None
    ) -> T:
        """Let a pure function change a draft of an object, write the changes, and return the function's result.

        The default object is the reconciled one. `only` lists the fields that may change.

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
        kind = self._kind if obj is None else declared_kind(obj)
        decided = await writes.decide(self._writer, kind, self._obj if obj is None else obj, function, only=only)
        return decided.result

    @must_await
    async def default(self, **fields: Any) -> Object:
        """Set fields of the reconciled object that nobody has set, and return the stored object.

        Guarantees: a value that anybody has set stays.

        Raises: `fl.ObjectDeleted`, `fl.ApiError`, `fl.UnknownOutcome`.

        Example:
            obj = await ctx.default(spec={"replicas": 1})
        """
        return await defaults.fill(self._writer, self._kind, self._obj, fields)

    @must_await
    async def migrate(self, obj: Object, *, fields: Sequence[str], managers: Sequence[str]) -> None:
        """Move `fields` that this controller once wrote by update into its Apply entry.

        After the move, an apply removes such a field if the payload leaves it out.

        Guarantees: only the named fields move, and only from the managedFields entries of the named field managers.
        The object is read live once per process.

        Raises: `fl.ObjectDeleted`, `fl.ApiError`, `fl.UnknownOutcome`.
        """
        kind, done = declared_kind(obj), (self._writer.manager, f"migrated {fields} of {managers}")
        previous = self._writer.last_writes_of(kind, obj.name, obj.namespace).get(done)
        if previous is None or previous.uid != obj.uid:
            await writes.migrate(self._writer, kind, obj, fields=fields, managers=managers)
            self._writer.last_writes_of(kind, obj.name, obj.namespace)[done] = LastWrite(obj.uid)

    def status(self, **fields: Any) -> None:
        """Set fields of the reconciled object's status. A value replaces the whole field, and None removes the field.

        Guarantees: all fields and conditions of a pass are written in one request after the pass, also if the handler
        raises an outcome or an error. Nothing is sent if the status already has these values.

        Does not guarantee: a write after a conflict. That pass read an old object and runs again.
        """
        self.report.set(**fields)

    def condition(self, type: str, status: bool | str | None, reason: str = "", message: str = "") -> None:  # noqa: A002
        """Set a condition of the reconciled object. The status is True, False or None, which means Unknown.

        Guarantees: the condition is written together with the status, and conditions of other writers stay.
        """
        # The API requires a reason. Without one, the type says the most.
        self.report.condition(type, status, reason or type, message)

    def event(self, reason: str, note: str, *, warning: bool = False) -> None:
        """Record an Event about the reconciled object. Equal Events are counted in one Event object.

        Does not guarantee: that the Event is written. Events are written in the background and dropped on failure.
        """
        self._services.recorder.record(self._obj, reason, note, warning=warning)
