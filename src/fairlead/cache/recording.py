"""A client that records its own writes in a cache."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.cache.cache import OwnWrite
from fairlead.client.client import Client


class WriteRecorder(Protocol):
    """The part of a `Cache` that a `RecordingClient` uses."""

    def writing(self, kind: Kind, namespace: str | None) -> AbstractContextManager[OwnWrite]: ...


class RecordingClient(Client):
    """A client whose writes can be read from the cache as soon as the server answered.

    Guarantees: it records the answer of every write that it sends, and it is the only place that records own writes.
    The writes through `ctx.unguarded` use this client too.

    Does not guarantee: that the cache shows a write whose answer was lost. Use it only for writes that the server
    stores, not for a dry run.
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
