"""The local view that an operator reads from and its writes are told to."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable

from fairlead.api import backoff, selectors
from fairlead.api.errors import ApiError
from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.cache import Cache, Handler, View
from fairlead.client.client import Client
from fairlead.client.credentials import CredentialsError
from fairlead.client.discovery import NotServed
from fairlead.runtime.sources import DeclarationError, Source

log = logging.getLogger("fairlead.local")

# A watch hears a bookmark about once a minute; after three without one, what is read here may be old.
STALE = 180.0
# A server that restarts is back within seconds; asked every half minute, one that is down is not burdened.
_DISCOVERY = 0.25, 30.0


class NotWatched(LookupError):
    """A read of something that the operator does not watch: it could not be told from something absent."""

    def __init__(self, kind: Kind, namespace: str | None) -> None:
        where = f" in {namespace}" if namespace else ""
        super().__init__(
            f"{kind.kind}{where} is not watched: name it in owns= or watches= (watches={{{kind.kind}: None}} wakes "
            f"nobody), or ask the server with ctx.live"
        )


class Local:
    """The watched kinds, in the operator's namespaces. Satisfies what the write disciplines ask of a view."""

    def __init__(self, client: Client, world: World, namespaces: Iterable[str], field_managers: Iterable[str]) -> None:
        self.cache = Cache(client, world, field_managers=field_managers)
        self._client = client
        self._world = world
        self._clock = world.clock
        self._selections: dict[tuple[str, str], tuple[str | None, str | None]] = {}
        self._namespaces = tuple(namespaces) or None
        self._views: dict[tuple[str, str], View] = {}

    async def watch(self, source: Source) -> None:
        """Watch it from now on. A kind that is not served yet is waited for, and so is a server that cannot say."""
        kind, selection = source.kind, (source.labels, source.fields)
        if self._selections.setdefault(kind.key, selection) != selection:
            raise DeclarationError(
                f"{kind} is selected in two ways: select it in one, or watch all of it and look closer with when="
            )
        if kind.key not in self._views:
            kind = await self._settle(kind)
            self._views[kind.key] = self.cache.watch(
                kind, namespaces=self._namespaces, labels=source.labels, fields=source.fields
            )

    async def _settle(self, kind: Kind) -> Kind:
        """The kind with its true plural and scope: until they are known, nothing can be watched rightly."""
        for failures in itertools.count(1):
            try:
                return await self._client.resolve(kind)
            except NotServed:
                break  # its watch tells, and comes back until it is
            except (ApiError, OSError) as error:
                lasting = error.code < 500 and error.code != 429 if isinstance(error, ApiError) else False
                if lasting or isinstance(error, CredentialsError):
                    raise
                pause = backoff.delay(failures, *_DISCOVERY, self._world)
                log.warning("cannot ask which kinds there are, again in %.1f s: %s", pause, error)
                await asyncio.sleep(pause)
        return kind

    def watches(self, kind: Kind) -> bool:
        """Whether it can be read here."""
        return kind.key in self._views

    def subscribe(self, kind: Kind, handler: Handler) -> None:
        """Call it with each change."""
        self._views[kind.key].subscribe(handler)

    def index(self, kind: Kind, name: str, values: Callable[[Object], Iterable[str]]) -> None:
        self._views[kind.key].index(name, values)

    async def wait_until(self, kind: Kind, resource_version: str) -> None:
        """Wait until its watch has told everything up to that version."""
        await self._views[kind.key].wait_until(resource_version)

    # Reading

    def get(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        view, namespace = self._view(kind, namespace)
        if view.kind.namespaced and namespace is None:
            raise ValueError(
                f"{kind.kind} {name} needs a namespace: the kind is namespaced, and there is no other to take"
            )
        return view.get(name, namespace)

    def owned_by(self, kind: Kind, uid: str, but: Iterable[tuple[str | None, str]] = ()) -> list[Object]:
        return self._view(kind, None)[0].owned_by(uid, but)

    def indexed(self, kind: Kind, name: str, value: str) -> list[Object]:
        return self._view(kind, None)[0].indexed(name, value)

    def keys(self, kind: Kind) -> Iterable[tuple[str | None, str]]:
        return self._views[kind.key].keys()

    def list(self, kind: Kind, namespace: str | None, *, labels: str | None = None) -> list[Object]:
        view, namespace = self._view(kind, namespace)
        found = view.list(namespace)
        if labels:
            selector = selectors.parse_labels(labels)
            return [obj for obj in found if selector.matches(obj.labels)]
        return found

    def _view(self, kind: Kind, namespace: str | None) -> tuple[View, str | None]:
        view = self._views.get(kind.key)
        if view is None:
            raise NotWatched(kind, None)
        within = namespace if view.kind.namespaced else None
        if within and not view.reaches(within):
            raise NotWatched(kind, within)
        return view, within

    # What the disciplines ask

    def covers(self, kind: Kind, namespace: str | None) -> bool:
        return self.cache.covers(kind, namespace)

    def version(self, kind: Kind, name: str, namespace: str | None) -> tuple[str, str] | None:
        view = self._views.get(kind.key)
        found = view.look(name, namespace) if view is not None else None
        return (found.uid, str(found.version)) if found is not None and found.version else None

    def peek(self, kind: Kind, name: str, namespace: str | None) -> Object | None:
        view = self._views.get(kind.key)
        return view.get(name, namespace) if view is not None else None

    def observe(self, kind: Kind, obj: Object) -> None:
        """Show at least this version of the object, which a live read returned."""
        with self.cache.writing(kind, obj.namespace) as own:
            own.wrote(obj)

    def observe_removal(self, kind: Kind, name: str, namespace: str | None, uid: str) -> None:
        """Hide the object with this uid: the server answered that it does not exist any more."""
        view = self._views.get(kind.key)
        found = view.look(name, namespace) if view is not None else None
        # If the watch has already reported the deletion, it will not report it again.
        if found is not None and found.uid == uid:
            with self.cache.writing(kind, namespace) as own:
                own.deleted(name, uid, None)

    # How it fares

    def problems(self) -> dict[str, str]:
        """The watches that have not been fed, or not for too long."""
        problems, now = {}, self._clock.monotonic()
        for health in self.cache.health():
            if not health.synced:
                problems[health.scope] = health.error or "not listed yet"
            elif health.fed_at is not None and now - health.fed_at > STALE:
                problems[health.scope] = f"heard nothing for {now - health.fed_at:.0f} s: {health.error or 'silent'}"
        return problems

    def staleness(self) -> dict[str, float]:
        """Seconds since each watch heard anything."""
        now = self._clock.monotonic()
        return {health.scope: now - health.fed_at for health in self.cache.health() if health.fed_at is not None}
