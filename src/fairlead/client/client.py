"""The Kubernetes API client: verbs on plain dicts, with kinds resolved by discovery."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import msgspec

from fairlead.api import gojson
from fairlead.api.errors import ApiError, NotFound
from fairlead.api.kinds import Kind, kind
from fairlead.api.objects import Object
from fairlead.api.redaction import redact_message
from fairlead.api.world import World
from fairlead.client import answers
from fairlead.client.discovery import Discovery, NotServed, ServedKind
from fairlead.client.exchange import ApiRequest, Exchange, RequestObserver
from fairlead.client.transport import Transport
from fairlead.client.watching import Watch

# Bookmarks arrive once a minute (59 to 61 s on idle kinds of a 1.36 server), so the connection is dead after
# 90 s without a byte.
SILENCE = 90.0

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Patch = list[Any] | Mapping[str, Any]
Propagation = Literal["Foreground", "Background", "Orphan"]


class PatchType(StrEnum):
    """The type of a patch. The value is the media type that the request sends."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"  # built-in kinds only
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list response. `continue_` is the token for the next page, or empty on the last page."""

    items: list[Object]
    resource_version: str
    continue_: str | None


@dataclass(frozen=True, slots=True)
class RawList:
    """One page of a list response, with the JSON of each item as bytes.

    The JSON is exactly what the server sent: items of built-in kinds have no apiVersion and kind.
    """

    items: list[bytes]
    resource_version: str
    continue_: str | None


_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class Client:
    """A client of one API server. Close its transport to close it.

    Guarantees: safe for concurrent use on one event loop. The client sends a write again only if the server certainly
    did not carry it out (see `exchange`). `timeout` limits the seconds of each request, but not those of a watch.

    Raises: the ApiError of the reason if the server rejects the request; `NotServed` if the server does not serve the
    kind; OSError if the server cannot be reached; `UnknownOutcome` if a write may or may not have happened.

    Example:
        client = Client(transport, World())
        settings = await client.get(ConfigMap, "settings", "default")
        await client.apply(ConfigMap("greeting", "default", data={"text": "hello"}), field_manager="me")
    """

    def __init__(
        self,
        transport: Transport,
        world: World,
        *,
        user_agent: str = "fairlead",
        timeout: float = 30.0,  # half of the server's own limit, so that the client gives up first
        observe: RequestObserver | None = None,
    ) -> None:
        self._exchange = Exchange(transport, world, user_agent=user_agent, timeout=timeout, observe=observe)
        self._discovery = Discovery(self._fetch)

    async def resolve(self, kind: Kind) -> Kind:
        """Return the kind with the plural and scope from the server's discovery. Raises NotServed."""
        return (await self._discovery.find(kind)).kind

    async def served(self, kind: Kind) -> ServedKind:
        """Return the kind with the verbs and subresources from the server's discovery. Raises NotServed."""
        return await self._discovery.find(kind)

    async def kinds(self) -> "list[ServedKind]":
        """Ask the server for every kind that it serves. The discovery cache is not used."""
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
        """Return the current object. With `resource_version="0"`, the server may return an older one from its cache."""
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
        """Return one page of at most `limit` objects, or all without `limit`. Each has an apiVersion and a kind.

        Raises ApiError for an answer that is not a complete list of the kind, so an empty list means that the server
        has no such object.
        """
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
        type_fields = {} if metadata_only else {"apiVersion": kind.api_version, "kind": kind.kind}
        items = [Object({**type_fields, **msgspec.json.decode(item)}) for item in page.items]
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
        """Return one page like `list`, with the JSON of each item as bytes instead of decoded objects."""
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            limit=limit,
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
            **{"continue": continue_},
        )
        served_kind = await self.served(kind)
        kind = served_kind.kind
        decode = answers.list_decoder(
            kind,
            metadata_only=metadata_only,
            can_be_watched="watch" in served_kind.verbs,
            list_kinds_of_others=lambda: self._discovery.list_kinds_of_others(kind),
        )
        accept = _METADATA_LIST if metadata_only else "application/json"
        try:
            page = await self._exchange.send(ApiRequest("GET", kind.path(namespace), query, accept), decode)
        except NotFound as error:
            raise self._to_not_served(kind, error) from None
        # bytes() copies, because a Raw would keep the whole page in memory as long as one of its items.
        items = [bytes(item) for item in page.items or ()]
        return RawList(items, page.metadata.resource_version, page.metadata.continue_ or None)

    async def create(
        self, obj: Mapping[str, Any], *, field_manager: str | None = None, dry_run: bool = False
    ) -> Object:
        """Create the object and return it as stored. Raises AlreadyExists if an object of that name exists."""
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
        """Replace the stored object by `obj`. Raises Conflict if `obj` has an old resourceVersion."""
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
        """Patch the object and return it as stored. A failed `test` of a JSON patch raises Invalid without causes."""
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
        """Send a server-side apply. If the object does not exist and `obj` has no uid, the server creates it."""
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
        """Delete the object. Return None if the server removed it, or the object if its finalizers have to run first.

        Raises Conflict if `uid` or `resource_version` is not that of the stored object.
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

        With `initial_events`, the server first sends the existing objects as ADDED frames, then a bookmark with the
        annotation k8s.io/initial-events-end. Without bookmarks, only TCP keep-alive detects a half-open connection.
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
            raise self._to_not_served(kind, error) from None
        try:
            yield Watch(stream, silence)
        finally:
            await stream.close()

    async def _object(self, *args: Any, **options: Any) -> Object:
        return (await self._send_object(*args, **options))[1]

    async def _send_object(
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
    ) -> tuple[int, Object]:
        """Send a request for one object. Return the status code and the object of the answer."""
        if name is not None and (name in {"", ".", ".."} or "/" in name):  # the path would name something else
            raise ValueError(f"{name!r} is not the name of a {kind.kind}")
        kind = await self.resolve(kind)
        if kind.namespaced and not namespace:
            raise ValueError(f"{kind.kind} {name or ''} needs a namespace: the kind is namespaced")
        path = kind.path(namespace, name, subresource)
        dumps = gojson.yaml_dumps if content_type == PatchType.APPLY else gojson.dumps
        encoded = None if body is None else dumps(body)
        request = ApiRequest(method, path, query, content_type=content_type, body=encoded, writes=writes)
        try:
            code, answer = await self._exchange.send_for_status(request, _decode_object)
            return code, Object(answer)
        except NotFound as error:
            raise self._explain_not_found(error, kind, namespace, name, subresource) from None
        except ApiError as error:
            if body is None or kind.group_kind != ("", "Secret"):
                raise
            # The message must not quote the values. Nor must the traceback of the original error.
            raise ApiError.of(redact_message(error.status, body), error.code) from None

    async def _identify(self, obj: Mapping[str, Any]) -> tuple[Kind, str | None, str | None]:
        """Return the kind (resolved by discovery), namespace and name of an object that is going to be written."""
        api_version, kind_name = obj.get("apiVersion"), obj.get("kind")
        if not api_version or not kind_name:
            raise ValueError("an object needs apiVersion and kind to be written")
        metadata = obj.get("metadata") or {}
        return await self.resolve(kind(api_version, kind_name)), metadata.get("namespace"), metadata.get("name")

    def _explain_not_found(
        self, error: NotFound, kind: Kind, namespace: str | None, name: str | None, subresource: str | None
    ) -> Exception:
        """Return the error for a 404: NotFound only if the answer names the requested object."""
        if not error.details.get("name"):
            return error if subresource else self._to_not_served(kind, error)
        if answers.names_object(error, kind, namespace, name):
            return error
        return answers.of_another_object(error, kind, name)

    def _to_not_served(self, kind: Kind, error: NotFound) -> Exception:
        """Return NotServed if a 404 response names no object, which means that the CRD was deleted; else `error`."""
        if error.details.get("name"):
            return error
        self._discovery.forget(kind)
        return NotServed(kind)

    async def _fetch(self, path: str, accept: str) -> Any:
        return await self._exchange.send(ApiRequest("GET", path, {}, accept), _decode_object)


def _drop_none(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _query(**values: str | int | bool | None) -> dict[str, str]:
    """Return query parameters in the form of the Kubernetes API: `true`, `false`, `dryRun=All`. None is left out."""
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
