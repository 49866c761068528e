"""Play a scenario on a real server and on the embedded one, and say where their answers differ."""

import asyncio
import hashlib
import itertools
import json
import re
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fairlead.api.requests import HttpRequest

sys.path.insert(0, str(Path(__file__).parent.parent / "conformance"))
import traces

from fairlead.server.app import Server
from fairlead.testing import virtual

from .histories import Scenario, definition_of

TRIES = 100  # of the orders that a history can meet, the rarest that the embedded server keeps falls one time in five
_SALT = secrets.token_hex(4)  # another process on the same server must not meet our namespaces,
_numbers = itertools.count(1)  # nor a test the one before, by chance
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Answer = dict[str, Any]
Played = list[tuple[int, Answer, Answer]]  # the step (-1: the definition), the real server's answer, the embedded one's
Difference = tuple[int, str, Any, Any]  # the step, the path in the answer, real, embedded


class Patient:
    """A real server that is asked again while it is not ready to answer: busy, or starting to serve a definition.

    Nor is it ready for reads from its memory while that lags behind what was written. What it is asked at some version
    or later, and what a watch begins with (also one that names an old version and wants all that there is), it tells as
    old as its memory happens to be; what is newer follows the end of initial events.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    async def request(self, request: HttpRequest) -> Any:
        if "resourceVersion" in (request.query or {}):
            await self._in_step(request.path)
        return await self._ready(request)

    async def stream(self, request: HttpRequest) -> Any:
        await self._in_step(request.path)
        return await self._transport.stream(request)

    async def _ready(self, request: HttpRequest) -> Any:
        for _ in range(100):
            reply = await self._transport.request(request)
            if reply.status not in (429, 503):
                break
            await asyncio.sleep(0.1)
        return reply

    async def _in_step(self, path: str) -> None:
        """Wait until what it has in memory is as new as what it has stored; nothing where there is nothing to read."""
        now = await self._ready(HttpRequest("GET", path))
        version = (json.loads(now.body).get("metadata") or {}).get("resourceVersion") if now.status == 200 else None
        if version:
            await self._ready(HttpRequest("GET", path, query={"resourceVersion": version}))


class Both:
    """The two servers: a real one that is kept, and an embedded one made anew for each scenario."""

    def __init__(self, transport: Any) -> None:
        self._real = Patient(transport)
        self._defined: dict[str, asyncio.Task[Any]] = {}
        self._thread = ThreadPoolExecutor(max_workers=1)

    async def play(self, scenario: Scenario) -> Played:
        """Each step's number and both servers' answers; of a definition (step -1) alone where they differ in it.

        Played again while the real server's chance falls on another choice than the embedded one's: what follows from
        it is then compared as well.
        """
        scenario, definition = settled(scenario)
        if definition:
            name = definition["metadata"]["name"]
            if name not in self._defined:
                self._defined[name] = asyncio.create_task(self._define(definition))
            real, ours = await self._defined[name]
            if real["code"] != 201 or compared(real, ours):
                return [(-1, real, ours)]
        for _ in range(TRIES):
            played = await self._once(scenario, definition)
            if not any(by_chance(scenario["steps"][index], real, ours) for index, real, ours in played):
                break
        return played

    async def _once(self, scenario: Scenario, definition: dict[str, Any] | None) -> Played:
        ident = f"d{_SALT}{next(_numbers):05x}"
        wanted, given = await asyncio.gather(
            traces.run(self._real, scenario, ident), self._beside(scenario, definition, ident)
        )
        return list(zip(range(len(wanted)), map(_told, wanted), map(_told, given), strict=True))

    async def _beside(self, *scenario: Any) -> list[Answer]:
        """The embedded server's answers, one scenario at a time: servers share what they compile, but no threads."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, embedded, *scenario)

    async def _define(self, definition: dict[str, Any]) -> Any:
        """Both servers' answers to a definition, once the real one serves it."""
        caller = traces.Caller(self._real)
        code, body, warnings = await caller.call("POST", DEFINITIONS, body=definition)
        paths = [_path(definition, version) for version in definition["spec"]["versions"]]
        for path in paths if code in (201, 409) else ():
            await traces.settled(caller, path, None, {"until": {"code": 200}})
        step = {"do": "POST", "path": DEFINITIONS, "body": definition}
        ours = (await self._beside({"steps": [step]}))[0]
        if code == 409:  # it is named after what it says: the server knows it from a run before
            return ours, ours
        names = traces.Names("conf-none", "none")
        real = {"code": code, "body": names.normal(body)}
        return (real | {"warnings": [names.text(text) for text in warnings]} if warnings else real), ours


def _told(answer: Answer) -> Answer:
    """A watch's answer without the bookmarks that come when it is time for one, which no two servers share."""
    if not isinstance(answer.get("body"), list):
        return answer
    ends = "k8s.io/initial-events-end"
    return {**answer, "body": [e for e in answer["body"] if e["type"] != "BOOKMARK" or ends in json.dumps(e)]}


def by_chance(step: dict[str, Any], real: Answer, ours: Answer) -> bool:
    """Whether two answers differ in what a real server leaves to chance, so that another try may fall otherwise.

    It gathers a Namespace's finalizers in a map of Go where a deletion changes them, and keeps them in the map's order.
    And a /scale that changes nothing takes the time from who owns the replicas, which is a write if that entry was not
    the first of its kind: entries are in the order of their seconds, and all of the embedded server's are in one.
    """
    both = [
        (answer.get("body") or {}).get("metadata") or {}
        for answer in (real, ours)
        if isinstance(answer.get("body"), dict)
    ]
    if len(both) < 2:
        return False
    if step["do"] == "DELETE" and re.fullmatch("/api/v1/namespaces/[^/]+", step["path"]):
        finalizers = [metadata.get("finalizers") or [] for metadata in both]
        return finalizers[0] != finalizers[1] and sorted(finalizers[0]) == sorted(finalizers[1])
    versions = [metadata.get("resourceVersion") for metadata in both]
    return step["do"] in ("PUT", "PATCH") and step["path"].endswith("/scale") and versions[0] != versions[1]


def _path(definition: dict[str, Any], version: dict[str, Any]) -> str:
    inside = "/namespaces/default" if definition["spec"]["scope"] == "Namespaced" else ""
    return f"/apis/{definition['spec']['group']}/{version['name']}{inside}/widgets"


def embedded(scenario: Scenario, definition: dict[str, Any] | None = None, ident: str = "none") -> list[Answer]:
    """The embedded server's answers to a scenario that is `settled`."""
    return virtual.run(_embedded(scenario, definition, ident))


async def _embedded(scenario: Scenario, definition: dict[str, Any] | None, ident: str) -> list[Answer]:
    transport = Server(virtual.world(), tokens=["differential"], authorization="RBAC").transport()
    if definition:
        await traces.Caller(transport).call("POST", DEFINITIONS, body=definition)
    answers: list[Answer] = await traces.run(transport, scenario, ident)
    return answers


def settled(scenario: Scenario) -> tuple[Scenario, dict[str, Any] | None]:
    """The scenario with the group of its definition, which is named after what it says, and that definition."""
    spec = scenario.get("definition")
    if not spec:
        return scenario, None
    group = f"d{hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:12]}.example.com"
    steps = json.loads(json.dumps(scenario["steps"]).replace("{group}", group))
    return {**scenario, "steps": steps}, definition_of(spec, group)


def compared(want: dict[str, Any], got: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Where two answers differ: first what they are, then their texts."""
    plain = [{key: value for key, value in answer.items() if key != "warnings"} for answer in (want, got)]
    found = traces.differences(*plain)
    if found:
        return sorted(found, key=lambda one: one[0] != ".code")  # what follows from another outcome comes after it
    told = traces.differences(texts(want), texts(got))
    return [(f"{path} (text)", wanted, given) for path, wanted, given in told]


def is_text(difference: Difference) -> bool:
    """Whether only a message or a warning differs."""
    return difference[1].endswith("(text)")


_PASSING = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|<uid\S{1,3}>|resourceVersion\W{1,6}\d+|ResourceVersion[^\d(]*\(\d+\)"
    r"|ResourceVersion in [a-z ]+: \d+"
    r"|in scheme \S+"  # where in a server's source its scheme is made: builds differ in it
)


def texts(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer's texts: its warnings, its message, and its causes' as a set, for a real server's order is random."""
    body = answer.get("body")
    said: dict[str, Any] = {"warnings": sorted(answer.get("warnings", ()))}
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("status") == "Failure":
        causes = (body.get("details") or {}).get("causes") or []
        said["causes"] = sorted(_PASSING.sub("_", str(cause.get("message"))) for cause in causes)
        if len(causes) < 2:
            told = _PASSING.sub("_", str(body.get("message")))
            first, listed, rest = told.partition("errors:\n")
            said["told"] = first + listed + "\n".join(sorted(rest.split("\n")))  # one a line, in no order
    return said
