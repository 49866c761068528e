"""Play a scenario on a real server and on the embedded one."""

import asyncio
import hashlib
import itertools
import json
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from recordings import Normalizer, RequestSender, Scenario, play_scenario, wait_until

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.testing import virtual

from .comparison import Response, compare_responses
from .histories import build_definition

MAX_PLAYS = 100  # A real server's rarest order that the embedded server has occurs in one of five plays.
_PROCESS_ID = secrets.token_hex(4)  # Processes and tests that use the same real server need different namespaces.
_numbers = itertools.count(1)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Played = list[tuple[int, Response, Response]]  # step (-1: the CRD), response of the real server, of the embedded one


class WaitingTransport:
    """A transport to a real server that waits until the server is ready.

    It repeats requests that get a 429 or 503. Before reads from the watch cache, it waits until the cache is up to
    date: a read at a resourceVersion and the initial events of a watch return the state of the cache.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    async def request(self, request: HttpRequest) -> Any:
        if "resourceVersion" in (request.query or {}):
            await self._wait_for_cache(request.path)
        return await self._send(request)

    async def stream(self, request: HttpRequest) -> Any:
        await self._wait_for_cache(request.path)
        return await self._transport.stream(request)

    async def _send(self, request: HttpRequest) -> Any:
        for _ in range(100):
            response = await self._transport.request(request)
            if response.status not in (429, 503):
                break
            await asyncio.sleep(0.1)
        return response

    async def _wait_for_cache(self, path: str) -> None:
        response = await self._send(HttpRequest("GET", path))
        metadata = json.loads(response.body).get("metadata") if response.status == 200 else None
        if version := (metadata or {}).get("resourceVersion"):
            await self._send(HttpRequest("GET", path, query={"resourceVersion": version}))


class ServerPair:
    """One real server for all scenarios, and a new embedded server for each."""

    def __init__(self, transport: Any) -> None:
        self._real = WaitingTransport(transport)
        self._definitions: dict[str, asyncio.Task[Any]] = {}
        self._thread = ThreadPoolExecutor(max_workers=1)

    async def play(self, scenario: Scenario) -> Played:
        """Return the responses of both servers. If the CRD's responses differ, return only these (step -1).

        A real server makes some choices at random. The scenario is repeated until they agree with the embedded server's
        choices, so that the responses after them are compared too.
        """
        scenario, definition = resolve_definition(scenario)
        if definition:
            name = definition["metadata"]["name"]
            if name not in self._definitions:
                self._definitions[name] = asyncio.create_task(self._define(definition))
            real, embedded = await self._definitions[name]
            if real["code"] != 201 or compare_responses(real, embedded):
                return [(-1, real, embedded)]
        for _ in range(MAX_PLAYS):
            played = await self._play_once(scenario, definition)
            if not any(differs_at_random(scenario["steps"][index], *responses) for index, *responses in played):
                break
        return played

    async def _play_once(self, scenario: Scenario, definition: dict[str, Any] | None) -> Played:
        run_id = f"d{_PROCESS_ID}{next(_numbers):05x}"
        real, embedded = await asyncio.gather(
            play_scenario(self._real, scenario, run_id), self._play_embedded(scenario, definition, run_id)
        )
        pairs = zip(map(_remove_periodic_bookmarks, real), map(_remove_periodic_bookmarks, embedded), strict=True)
        return [(index, *pair) for index, pair in enumerate(pairs)]

    async def _play_embedded(self, *arguments: Any) -> list[Response]:
        """Play on the embedded server, one scenario at a time: servers share compiled schemas without locks."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, play_embedded, *arguments)

    async def _define(self, definition: dict[str, Any]) -> tuple[Response, Response]:
        """Create a CRD on both servers. Return their responses after the real server serves it."""
        sender = RequestSender(self._real)
        code, body, warnings = await sender.send("POST", DEFINITIONS, body=definition)
        paths = [_collection_path(definition, version) for version in definition["spec"]["versions"]]
        for path in paths if code in (201, 409) else ():
            await wait_until(sender, path, None, {"code": 200})
        step = {"do": "POST", "path": DEFINITIONS, "body": definition}
        embedded = (await self._play_embedded({"steps": [step]}))[0]
        if code == 409:  # The name depends on the content, so an earlier run has created the same CRD.
            return embedded, embedded
        normalizer = Normalizer("conf-none", "none")
        real = {"code": code, "body": normalizer.normalize(body)}
        if warnings:
            real["warnings"] = [normalizer.normalize_text(warning) for warning in warnings]
        return real, embedded


def _remove_periodic_bookmarks(response: Response) -> Response:
    """Return the response of a watch without the bookmarks that servers send from time to time."""
    if not isinstance(response.get("body"), list):
        return response
    annotation = "k8s.io/initial-events-end"
    events = [event for event in response["body"] if event["type"] != "BOOKMARK" or annotation in json.dumps(event)]
    return {**response, "body": events}


def differs_at_random(step: dict[str, Any], real: Response, embedded: Response) -> bool:
    """Return whether two responses differ in a random choice of the real server, so that another play may agree.

    If a deletion changes the finalizers of a Namespace, the real server stores them in the order of a Go map.

    A write to /scale that changes nothing removes the time from the entry that owns the replicas. That is a change if
    the entry was not the first one. Entries are sorted by their second. On the embedded server, all are equal.
    """
    bodies = [response["body"] for response in (real, embedded) if isinstance(response.get("body"), dict)]
    if len(bodies) < 2:
        return False
    metadata = [body.get("metadata") or {} for body in bodies]
    if step["do"] == "DELETE" and re.fullmatch("/api/v1/namespaces/[^/]+", step["path"]):
        finalizers = [item.get("finalizers") or [] for item in metadata]
        return finalizers[0] != finalizers[1] and sorted(finalizers[0]) == sorted(finalizers[1])
    versions = [item.get("resourceVersion") for item in metadata]
    return step["do"] in ("PUT", "PATCH") and step["path"].endswith("/scale") and versions[0] != versions[1]


def _collection_path(definition: dict[str, Any], version: dict[str, Any]) -> str:
    namespace = "/namespaces/default" if definition["spec"]["scope"] == "Namespaced" else ""
    return f"/apis/{definition['spec']['group']}/{version['name']}{namespace}/widgets"


def play_embedded(scenario: Scenario, definition: dict[str, Any] | None = None, run_id: str = "none") -> list[Response]:
    """Return the responses of a new embedded server to a scenario whose definition is resolved."""
    return virtual.run(_play_embedded(scenario, definition, run_id))


async def _play_embedded(scenario: Scenario, definition: dict[str, Any] | None, run_id: str) -> list[Response]:
    transport = Server(virtual.world(), tokens=["differential"], authorization="RBAC").transport()
    if definition:
        await RequestSender(transport).send("POST", DEFINITIONS, body=definition)
    return await play_scenario(transport, scenario, run_id)


def resolve_definition(scenario: Scenario) -> tuple[Scenario, dict[str, Any] | None]:
    """Return the scenario with the API group of its CRD, and that CRD. The group is a hash of the CRD's content."""
    spec = scenario.get("definition")
    if not spec:
        return scenario, None
    group = f"d{hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:12]}.example.com"
    steps = json.loads(json.dumps(scenario["steps"]).replace("{group}", group))
    return {**scenario, "steps": steps}, build_definition(spec, group)
