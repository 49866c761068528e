"""The verbs, on plain dicts, with kinds resolved by discovery."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import msgspec

from fairlead.api import gojson
from fairlead.api.errors import NotFound
from fairlead.api.kinds import Kind, kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.client.discovery import Discovery, NotServed, ServedKind
from fairlead.client.exchange import ApiRequest, Exchange, RequestObserver
from fairlead.client.transport import Transport
from fairlead.client.watching import Watch

# Bookmarks come once a minute (59 to 61 s on idle kinds of a 1.36 server), so after a minute and a half of silence
# nobody is there.
SILENCE = 90.0

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Patch = list[Any] | Mapping[str, Any]
Propagation = Literal["Foreground", "Background", "Orphan"]


class PatchType(StrEnum):
    """How a patch is meant; the value is its media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"  # built-in kinds only
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list: `continue_` is there when there is more."""

    items: list[Object]
    resource_version: str
    continue_: str | None


class _RawMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _RawList(msgspec.Struct):
    metadata: _RawMeta = msgspec.field(default_factory=_RawMeta)
    items: list[msgspec.Raw] | None = None


@dataclass(frozen=True, slots=True)
class RawList:
    """One page of a list, each item as its JSON, a copy of its own.

    As sent: items of built-in kinds come without apiVersion and kind.
    """

    items: list[bytes]
    resource_version: str
    continue_: str | None


_decode_list = msgspec.json.Decoder(_RawList).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class Client:
    """A server's verbs. Safe for concurrent use on one loop; closing it is closing its transport.

    Raises the ApiError of the reason when the server refuses, `NotServed` when it does not know the kind, OSError
    when it cannot be reached, `UnknownOutcome` when a write may or may not have happened. `exchange` says what is
    retried.
    `timeout` bounds each request (not a watch).
    """

    def __init__(
        self,
        transport: Transport,
        world: World,
        *,
        user_agent: str = "fairlead",
        timeout: float = 30.0,  # half of what a server allows a request, so that it is we who give up
        observe: RequestObserver | None = None,
    ) -> None:
        self._exchange = Exchange(transport, world, user_agent=user_agent, timeout=timeout, observe=observe)
        self._discovery = Discovery(self._fetch)

    async def resolve(self, kind: Kind) -> Kind:
        """The kind with the plural and scope that the server gives it."""
        return (await self._discovery.find(kind)).kind

    async def served(self, kind: Kind) -> ServedKind:
        """The kind with its verbs and subresources."""
        return await self._discovery.find(kind)

    async def kinds(self) -> "list[ServedKind]":
        """Every kind that the server serves, asked anew."""
        return await self._discovery.list_all()

    async def get(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        resource_version: str | None = None,
    ) -> Object:
        """One object, as it is now; with `resource_version="0"`, as some replica remembers it."""
        query = _query(resourceVersion=resource_version)
        return await self._object("GET", kind, namespace, name, subresource, query)

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        metadata_only: bool = False,
    ) -> ObjectList:
        """One page of objects (all of them without `limit`), each with its apiVersion and kind."""
        page = await self.list_raw(
            kind,
            namespace,
            labels=labels,
            fields=fields,
            limit=limit,
            continue_=continue_,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            metadata_only=metadata_only,
        )
        told = {} if metadata_only else {"apiVersion": kind.api_version, "kind": kind.kind}
        items = [Object({**told, **msgspec.json.decode(item)}) for item in page.items]
        return ObjectList(items, page.resource_version, page.continue_)

    async def list_raw(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        metadata_only: bool = False,
    ) -> RawList:
        """`list` without decoding the items."""
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            limit=limit,
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
            **{"continue": continue_},
        )
        kind = await self.resolve(kind)
        accept = _METADATA_LIST if metadata_only else "application/json"
        try:
            page = await self._exchange.send(ApiRequest("GET", kind.path(namespace), query, accept), _decode_list)
        except NotFound as error:
            raise self._not_served(kind, error) from None
        # bytes() copies: a Raw would keep the whole page alive for as long as one of its items is kept
        items = [bytes(item) for item in page.items or ()]
        return RawList(items, page.metadata.resource_version, page.metadata.continue_ or None)

    async def create(
        self, obj: Mapping[str, Any], *, field_manager: str | None = None, dry_run: bool = False
    ) -> Object:
        """Create it. Raises AlreadyExists when something of that name is there."""
        kind, namespace, _ = await self._identify(obj)
        query = _query(fieldManager=field_manager, dryRun=dry_run)
        return await self._object("POST", kind, namespace, None, None, query, body=obj, writes=not dry_run)

    async def replace(
        self,
        obj: Mapping[str, Any],
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Replace all of it. Guarded only if it carries a resourceVersion: then Conflict when it is not the newest."""
        kind, namespace, name = await self._identify(obj)
        query = _query(fieldManager=field_manager, dryRun=dry_run)
        name = _require_name(obj, name)
        return await self._object("PUT", kind, namespace, name, subresource, query, body=obj, writes=not dry_run)

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        patch: Patch,
        *,
        type: PatchType,  # noqa: A002 - the API's own word
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Patch it. A JSON patch whose `test` fails raises Invalid without causes."""
        query = _query(fieldManager=field_manager, force=force, dryRun=dry_run)
        return await self._object(
            "PATCH", kind, namespace, name, subresource, query, body=patch, content_type=type, writes=not dry_run
        )

    async def apply(
        self,
        obj: Mapping[str, Any],
        *,
        field_manager: str,
        force: bool = True,  # a controller that does not force can never correct drift
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: creates it when it is not there, unless the object says uid."""
        kind, namespace, name = await self._identify(obj)
        return await self.patch(
            kind,
            _require_name(obj, name),
            namespace,
            obj,
            type=PatchType.APPLY,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
            dry_run=dry_run,
        )

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace: int | None = None,
        dry_run: bool = False,
    ) -> Object | None:
        """Delete it if it still is the one meant (Conflict otherwise).

        None when it is gone; the object when it waits for finalizers or grace.
        """
        preconditions = _drop_none(uid=uid, resourceVersion=resource_version)
        options = _drop_none(
            preconditions=preconditions or None,
            propagationPolicy=propagation,
            gracePeriodSeconds=grace,
            dryRun=["All"] if dry_run else None,
        )
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        answer = await self._object("DELETE", kind, namespace, name, None, {}, body=body, writes=not dry_run)
        return None if answer.kind == "Status" and answer.api_version == "v1" else answer

    def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        bookmarks: bool = True,
        initial_events: bool = False,
        timeout_seconds: int | None = None,
        metadata_only: bool = False,
    ) -> AbstractAsyncContextManager[Watch]:
        """Open a watch: `async with client.watch(kind) as watch: async for frame in watch: …`.

        With `initial_events` the state comes first, as ADDED frames and a bookmark annotated
        k8s.io/initial-events-end. Without bookmarks a half-open connection is noticed only by TCP keep-alive.
        """
        query = _query(
            watch=True,
            resourceVersion=resource_version,
            labelSelector=labels,
            fieldSelector=fields,
            allowWatchBookmarks=bookmarks or None,
            sendInitialEvents=initial_events or None,
            resourceVersionMatch="NotOlderThan" if initial_events else None,
            timeoutSeconds=timeout_seconds,
        )
        accept = _METADATA if metadata_only else "application/json"
        return self._watch(kind, namespace, query, accept, SILENCE if bookmarks else None)

    @asynccontextmanager
    async def _watch(
        self, kind: Kind, namespace: str | None, query: Mapping[str, str], accept: str, silence: float | None
    ) -> AsyncIterator[Watch]:
        kind = await self.resolve(kind)
        try:
            stream = await self._exchange.open_stream(ApiRequest("GET", kind.path(namespace), query, accept))
        except NotFound as error:
            raise self._not_served(kind, error) from None
        try:
            yield Watch(stream, silence)
        finally:
            await stream.close()

    async def _object(
        self,
        method: str,
        kind: Kind,
        namespace: str | None,
        name: str | None,
        subresource: str | None,
        query: Mapping[str, str],
        *,
        body: Any = None,
        content_type: str = "application/json",
        writes: bool = False,
    ) -> Object:
        if name is not None and (name in {"", ".", ".."} or "/" in name):  # would address something else than an object
            raise ValueError(f"{name!r} is not the name of a {kind.kind}")
        kind = await self.resolve(kind)
        if kind.namespaced and not namespace:
            raise ValueError(f"{kind.kind} {name or ''} needs a namespace: the kind is namespaced")
        path = kind.path(namespace, name, subresource)
        dumps = gojson.yaml_dumps if content_type == PatchType.APPLY else gojson.dumps
        encoded = None if body is None else dumps(body)
        request = ApiRequest(method, path, query, content_type=content_type, body=encoded, writes=writes)
        try:
            return Object(await self._exchange.send(request, _decode_object))
        except NotFound as error:
            raise (error if subresource else self._not_served(kind, error)) from None

    async def _identify(self, obj: Mapping[str, Any]) -> tuple[Kind, str | None, str | None]:
        """Kind, namespace and name of an object that is to be written."""
        api_version, kind_name = obj.get("apiVersion"), obj.get("kind")
        if not api_version or not kind_name:
            raise ValueError("an object needs apiVersion and kind to be written")
        metadata = obj.get("metadata") or {}
        return await self.resolve(kind(api_version, kind_name)), metadata.get("namespace"), metadata.get("name")

    def _not_served(self, kind: Kind, error: NotFound) -> Exception:
        """A 404 that names nothing is about the kind, not about an object: its CRD went away."""
        if error.details.get("name"):
            return error
        self._discovery.forget(kind)
        return NotServed(kind)

    async def _fetch(self, path: str, accept: str) -> Any:
        return await self._exchange.send(ApiRequest("GET", path, {}, accept), _decode_object)


def _drop_none(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _query(**values: str | int | bool | None) -> dict[str, str]:
    """Query parameters as the API spells them; what is None is left out."""
    query: dict[str, str] = {}
    for key, value in values.items():
        if key == "dryRun":
            if value:
                query[key] = "All"
        elif isinstance(value, bool):
            query[key] = "true" if value else "false"
        elif value is not None:
            query[key] = str(value)
    return query


def _require_name(obj: Mapping[str, Any], name: str | None) -> str:
    if not name:
        raise ValueError(f"{obj.get('kind')} needs metadata.name to be written")
    return name
