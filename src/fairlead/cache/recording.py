"""A client that records its writes in the cache, so that reads show them, and in the history."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from fairlead.api.errors import ApiError
from fairlead.api.field_changes import find_changes, select_sent
from fairlead.api.history import WRITTEN, FieldChange, History, ObjectRef
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object, is_removed
from fairlead.cache.cache import OwnWrite
from fairlead.cache.informer import Snapshot
from fairlead.cache.own_versions import OwnVersions
from fairlead.client.client import Client, PatchType

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_HTTP_CREATED = 201


class WriteRecorder(Protocol):
    """The method of `Cache` that a `RecordingClient` calls."""

    @property
    def own_versions(self) -> OwnVersions: ...

    def find(self, kind: Kind, name: str, namespace: str | None) -> Snapshot | None: ...

    def writing(self, kind: Kind, namespace: str | None) -> AbstractContextManager[OwnWrite]: ...


class RecordingClient(Client):
    """A client that records the response of each write, so that reads from the cache show the write immediately.

    Guarantees: the client records the response of every write that it sends. No other code records own writes. The
    writes of `ctx.unguarded` use this client too. Each write is also a record of the history, if anybody subscribes to
    writes. With `is_dry_run`, writes are recorded only in the history, because the server does not store them.

    Does not guarantee: that the cache shows a write whose response was lost. The changed fields in the history are the
    difference to the cached object, in the fields that the request names (two levels deep): they may include a change
    of another writer below these that the watch has not reported yet.
    """

    def __init__(
        self,
        *args: Any,
        cache: WriteRecorder,
        history: History | None = None,
        cluster: str = "",
        is_dry_run: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._cache = cache
        self._history = history
        self._cluster = cluster
        self._is_dry_run = is_dry_run

    async def _send_object(
        self,
        method: str,
        kind: Kind,
        namespace: str | None,
        *address: Any,
        writes: bool = False,
        **request_options: Any,
    ) -> tuple[int, Object]:
        if not writes:
            return await super()._send_object(method, kind, namespace, *address, **request_options)
        write = None
        if self._history is not None and self._history.wants(WRITTEN):
            write = self._begin(method, kind, namespace, address[0], address[1], request_options)
        try:
            if self._is_dry_run:
                code, answer = await super()._send_object(
                    method, kind, namespace, *address, writes=True, **request_options
                )
            else:
                with self._cache.writing(kind, namespace) as own_write:
                    code, answer = await super()._send_object(
                        method, kind, namespace, *address, writes=True, **request_options
                    )
                    self._record(own_write, method, kind, answer)
        except Exception as error:
            if write is not None:
                write.fail(error)
            raise
        if write is not None:
            write.end(code, answer)
        return code, answer

    def _record(self, own_write: OwnWrite, method: str, kind: Kind, answer: Object) -> None:
        if (answer.api_version, answer.kind) == kind.key:  # not a Scale or a Status
            own_write.record_delete(answer.name, answer.uid, answer) if method == "DELETE" else own_write.record(answer)
            self._cache.own_versions.add(answer.uid, answer.resource_version)
            if is_removed(answer, is_deletion=method == "DELETE"):
                self._cache.own_versions.add_removal(answer.uid)
        elif method == "DELETE" and (uid := (answer.get("details") or {}).get("uid")):
            own_write.record_delete(answer["details"]["name"], uid, None)
            self._cache.own_versions.add_removal(uid)

    def _begin(
        self,
        method: str,
        kind: Kind,
        namespace: str | None,
        name: str | None,
        subresource: str | None,
        request_options: Mapping[str, Any],
    ) -> "_RecordedWrite":
        assert self._history is not None
        if name is None:  # a create
            name = ((request_options.get("body") or {}).get("metadata") or {}).get("name") or ""
        verb = "apply" if request_options.get("content_type") == PatchType.APPLY else _VERBS[method]
        ref = ObjectRef(kind.kind, namespace if kind.namespaced else None, name, kind.api_version, self._cluster)
        before = self._cache.find(kind, name, namespace) if name else None
        return _RecordedWrite(
            self._history, verb, ref, subresource or "", request_options.get("body"), before, self._is_dry_run
        )


class _RecordedWrite:
    """A write that is on its way, for the history."""

    def __init__(
        self,
        history: History,
        verb: str,
        ref: ObjectRef,
        subresource: str,
        body: Any,
        before: Snapshot | None,
        is_dry_run: bool,
    ) -> None:
        self._history, self._verb, self._ref = history, verb, ref
        self._subresource, self._body, self._before, self._is_dry_run = subresource, body, before, is_dry_run

    def end(self, code: int, answer: Object) -> None:
        """Record what the write changed."""
        before = self._before
        version_before = str(before.version) if before is not None else ""
        version, outcome, fields = answer.resource_version, "changed", tuple[FieldChange, ...]()
        is_same_kind = (answer.kind, answer.api_version) == (self._ref.kind, self._ref.api_version)
        if self._verb == "delete":
            outcome = "deleted" if not is_same_kind or is_removed(answer, is_deletion=True) else "deleting"
        elif not is_same_kind:
            pass  # The answer of a subresource such as eviction or scale.
        elif code == _HTTP_CREATED:
            outcome, fields = "created", find_changes(None, answer)
        elif before is not None and before.uid == answer.uid:
            if version != version_before or self._is_dry_run:
                fields = find_changes(before.object(), answer)
            if not self._is_dry_run and version != version_before:
                # A new version without a difference has other managedFields. Differences in fields that were not sent
                # are changes of others that the watch has not reported yet.
                fields = select_sent(fields, self._body) if fields else (FieldChange("metadata.managedFields"),)
            outcome = "changed" if fields else "unchanged"
            if is_removed(answer):
                outcome = "deleted"
        self._emit(version=version, version_before=version_before, fields=fields, outcome=outcome)

    def fail(self, error: Exception) -> None:
        """Record that the write failed."""
        outcome = (error.reason if isinstance(error, ApiError) else "") or type(error).__name__
        self._emit(outcome=outcome, message=str(error))

    def _emit(self, **fields: Any) -> None:
        self._history.record(
            WRITTEN,
            self._verb,
            object=self._ref,
            subresource=self._subresource,
            is_dry_run=self._is_dry_run,
            **fields,
        )
