"""A client that records its writes in the cache."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.cache.cache import OwnWrite
from fairlead.client.client import Client


class WriteRecorder(Protocol):
    """The method of `Cache` that a `RecordingClient` calls."""

    def writing(self, kind: Kind, namespace: str | None) -> AbstractContextManager[OwnWrite]: ...


class RecordingClient(Client):
    """A client that records the response of each write, so that reads from the cache show the write immediately.

    Guarantees: the client records the response of every write that it sends. No other code records own writes. The
    writes of `ctx.unguarded` use this client too.

    Does not guarantee: that the cache shows a write whose response was lost. Do not send a dry run with this client:
    the server does not store it.
    """

    def __init__(self, *args: Any, cache: WriteRecorder, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cache = cache

    async def _object(
        self, method: str, kind: Kind, namespace: str | None, *where: Any, writes: bool = False, **rest: Any
    ) -> Object:
        if not writes:
            return await super()._object(method, kind, namespace, *where, **rest)
        with self._cache.writing(kind, namespace) as own:
            answer = await super()._object(method, kind, namespace, *where, writes=True, **rest)
            if (answer.api_version, answer.kind) == kind.key:  # not a Scale or a Status
                own.record_delete(answer.name, answer.uid, answer) if method == "DELETE" else own.record(answer)
            elif method == "DELETE" and (uid := (answer.get("details") or {}).get("uid")):
                own.record_delete(answer["details"]["name"], uid, None)
        return answer
