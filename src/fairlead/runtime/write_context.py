"""The writes of a handler that need no owner, on the operator's own cluster and on the other clusters of the run."""

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from fairlead import writes
from fairlead.api.kinds import Kind
from fairlead.api.kinds import kind as kind_of
from fairlead.api.objects import Object
from fairlead.api.source_locations import line_location, user_frame, with_location
from fairlead.client.client import Propagation
from fairlead.runtime.handlers import HandlerError
from fairlead.runtime.read_context import ReadContext
from fairlead.runtime.services import Services
from fairlead.writes import Draft, DuplicatePayload, Writer
from fairlead.writes.apply import ChildApply
from fairlead.writes.payload import kind_of_payload
from fairlead.writes.writer import Key, object_key

T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Coroutine[Any, Any, Any]])


def must_await(method: M) -> M:
    """Return a wrapper of a write method that remembers its calls, so that a missing `await` can be reported."""

    @functools.wraps(method)
    def start(self: "WriteContext", *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        coroutine = method(self, *args, **kwargs)
        frame = user_frame(sys._getframe(1))  # noqa: SLF001 - the documented way to look at callers
        if frame is not None:
            self.calls.append((coroutine, method.__name__, frame.f_code.co_filename, frame.f_lineno))
        return coroutine

    return cast("M", start)


class WriteContext(ReadContext):
    """The writes that set no owner reference, besides the reads of ReadContext."""

    def __init__(self, services: Services, writer: Writer, namespace: str | None, controller: str) -> None:
        super().__init__(services, namespace)
        self._writer = writer
        self._controller = controller
        self.applied: dict[Key, bytes] = {}
        """The digest of each payload that this pass applied."""
        self.calls: list[tuple[Coroutine[Any, Any, Any], str, str, int]] = []
        """The writes that this pass started, each with its name, file and line."""

    @must_await
    async def create(self, obj: Any) -> Object:
        """Create an object if no object of that name exists, and return the stored object.

        An existing object is never changed. Use `create` for objects that other people may edit afterwards.

        Raises: `fl.ApiError` if the server rejects the object, `fl.UnknownOutcome` if its answer was lost.
        """
        return await writes.create_only(self._writer, (await self._resolve_payload(obj))[1])

    @must_await
    async def delete(self, obj: Object, *, unchanged: bool = False, propagation: Propagation | None = None) -> None:
        """Delete an object that was read before. Return without error if it does not exist any more.

        Guarantees: an object that was recreated under the same name is not deleted. With `unchanged`, the object is
        deleted only if it has not changed since it was read.

        Raises: `fl.errors.ObjectChanged` with `unchanged`, `fl.ApiError`, `fl.UnknownOutcome`.
        """
        await writes.delete(self._writer, declared_kind(obj), obj, unchanged=unchanged, propagation=propagation)

    def check_awaited(self, error: Exception | None = None) -> None:
        """Raise HandlerError if the handler started a write and never awaited it.

        If the handler failed with `error`, HandlerError is raised only if the missing `await` caused that error.
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
        self._warn_if_not_watched(kind, payload.namespace)
        # The key is recorded before the apply: a child whose apply fails must not be pruned.
        previous_digest = self.applied.setdefault(key, b"")
        child = ChildApply(self._writer, kind, payload, owner, adopt)
        if previous_digest not in (b"", child.digest):
            raise DuplicatePayload(child.target)
        self.applied[key] = child.digest
        try:
            return await child.run(recreate=recreate)
        except BaseException:
            self.applied[key] = previous_digest  # The handler may apply another payload instead of the rejected one.
            raise

    def _warn_if_not_watched(self, kind: Kind, namespace: str | None) -> None:
        """Log a warning, once, if changes of the applied object by others will not be noticed."""
        watched, topic = self._services.watched, ("not watched", self._services.cluster, kind.api_version, kind.kind)
        if not watched.is_watched(kind):
            self._services.warn_once(
                topic,
                "%s is applied, but the operator does not watch it: it notices no change or deletion by others, "
                "and every pass sends the apply. Name the kind in owns= or watches= of the controller %s",
                kind.kind,
                self._controller,
            )
        elif namespace and kind.namespaced and not watched.reader(kind).includes_namespace(namespace):
            self._services.warn_once(
                (*topic, namespace),
                "%s is applied in the namespace %s, which the operator does not watch: it notices neither changes nor "
                "a deletion by others there. Run it with -n %s too, or with -A",
                kind.kind,
                namespace,
                namespace,
            )

    async def _resolve_payload(self, obj: Any) -> tuple[Kind, Object]:
        """Return the kind and the payload of `obj`. A missing namespace is that of the reconciled object."""
        plain = _to_dict(obj)
        kind, payload = await self._services.client.resolve(kind_of_payload(plain)), Object(plain)
        if kind.namespaced and not payload.namespace and self._namespace:
            payload = Object(payload | {"metadata": {**payload.metadata, "namespace": self._namespace}})
        return kind, payload


class ClusterContext(WriteContext):
    """The context of another cluster in a pass (`ctx.cluster("edge")`), with reads and writes without an owner.

    Does not guarantee: cleanup. Objects in another cluster have no owner reference, so neither the garbage collector
    nor pruning deletes them. Delete them in the `@op.cleanup` handler.
    """

    @must_await
    async def apply(self, obj: Any, *, adopt: bool = False, recreate: bool = False) -> Object:
        """Apply an object as `Context.apply` does, without an owner.

        An object counts as ours if our field manager has an Apply entry in its managedFields.

        Raises: the same errors as `Context.apply`.
        """
        kind, payload = await self._resolve_payload(obj)
        return await self._apply(kind, payload, None, adopt=adopt, recreate=recreate)

    @must_await
    async def decide(self, function: Callable[[Draft], T], obj: Object, *, only: Sequence[str] | None = None) -> T:
        """Decide as `Context.decide` does, on an object of the other cluster."""
        return (await writes.decide(self._writer, declared_kind(obj), obj, function, only=only)).result


def _to_dict(obj: Any) -> Mapping[str, Any]:
    """Return a dict unchanged, and convert a model (pydantic, msgspec, dataclass) to a dict."""
    if isinstance(obj, Mapping):
        return obj
    if hasattr(obj, "model_dump"):
        return dict(obj.model_dump(mode="json", by_alias=True, exclude_none=True))
    plain: Mapping[str, Any] = msgspec.to_builtins(obj, str_keys=True, order="deterministic")
    return plain


def declared_kind(obj: Object) -> Kind:
    return kind_of(obj.api_version, obj.kind)
