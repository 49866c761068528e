"""A cluster as a user's test sees it: what everybody else does to it, and operators that run on it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fairlead.api import manifests
from fairlead.api.builtin import Namespace
from fairlead.api.errors import NotFound
from fairlead.api.kinds import Kind, kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.client.discovery import NotServed
from fairlead.client.transport import Transport
from fairlead.runtime.definitions import install_missing
from fairlead.runtime.operator import Operator, Options
from fairlead.runtime.running import Running
from fairlead.testing.network import CountingTransport

if TYPE_CHECKING:
    from fairlead.server.faults import Fault, Faults

# Longer than the longest back-off twice, so what goes well in the end has gone well; in virtual time it costs nothing.
PATIENCE = 90.0


class Cluster:
    """One namespace of one API server, for one test.

    `create`, `edit`, `delete` are what users and other programs do; each namespaced object
    is meant in `namespace` unless it names another.
    """

    def __init__(
        self, world: World, namespace: str, transport: Callable[[], Transport], inject: Callable[[Any], Any] | None
    ) -> None:
        self.world = world
        self.namespace = namespace
        self._opened: list[Transport] = []
        self._open = transport
        self.client = Client(self._transport(), world, user_agent="test")
        self._inject = inject
        self._running: list[Running] = []
        self._written: list[Object] = []
        self._deleted: list[Object] = []
        self._stack = contextlib.AsyncExitStack()
        self._opened_in: asyncio.AbstractEventLoop | None = None
        self.wires: list[CountingTransport] = []
        """The way of each operator to the server, which counts its requests; its watches are GETs too."""

    async def open(self) -> None:
        """Make the namespace, at the beginning of the test."""
        self._opened_in = asyncio.get_running_loop()
        await self.client.create(Namespace(self.namespace))

    # What others do

    async def apply(self, *files: str | Path) -> None:
        """Apply what is in YAML or JSON files, definitions first, as `kubectl apply --server-side -f` would."""
        objects = [obj for file in files for obj in manifests.read(Path(file))]
        for obj in sorted(objects, key=manifests.comes_first, reverse=True):
            await self._served(obj)
            self._written.append(await self.client.apply(await self._placed(obj), field_manager="test"))

    async def create(self, obj: Mapping[str, Any]) -> Object:
        """Create it. A kind that nobody has defined is defined first, with a schema that allows everything."""
        obj = Object(obj)
        await install_missing(self.client, [kind(obj.api_version, obj.kind)])
        self._written.append(await self.client.create(await self._placed(obj)))
        return self._written[-1]

    async def edit(self, obj: Mapping[str, Any], *, subresource: str | None = None, **fields: Any) -> Object:
        """Change fields (`spec={"size": 3}`), by merge patch; `subresource="status"` for the status."""
        obj = Object(obj)
        of = kind(obj.api_version, obj.kind)
        edited = await self.client.patch(
            of, obj.name, obj.namespace, fields, type=PatchType.MERGE, subresource=subresource
        )
        self._written.append(edited)
        return edited

    async def delete(self, obj: Mapping[str, Any]) -> None:
        """Delete it. With a finalizer it stays until that is off."""
        obj = Object(obj)
        await self.client.delete(kind(obj.api_version, obj.kind), obj.name, obj.namespace)
        self._deleted.append(obj)

    async def get(self, kind: Kind, name: str) -> Object | None:
        """The object as it is now, or None."""
        try:
            return await self.client.get(kind, name, await self._namespace(kind))
        except NotFound:
            return None

    async def list(self, kind: Kind) -> "list[Object]":
        """The objects as they are now."""
        return (await self.client.list(kind, await self._namespace(kind))).items

    # Operators

    async def start(self, operator: Operator, **options: Unpack[Options]) -> Running:
        """Run the operator here until the test ends. Kinds that nobody has defined are defined, as by `create`."""
        if not isinstance(operator, Operator):
            raise TypeError(f"what runs here is a fairlead.Operator, not {type(operator).__name__}: await operator(op)")
        self._must_be_open()
        kinds = [source.kind for one in operator.controllers.values() for source in one.sources if not source.cluster]
        await install_missing(self.client, [*kinds, *(indexed for indexed, _, _ in operator.indexes)])
        wire = CountingTransport(self._transport())
        self.wires.append(wire)
        options = {"namespaces": [self.namespace], **options}
        running = await self._stack.enter_async_context(operator.running(wire, self.world, **options))
        self._running.append(running)
        return running

    async def settle(self, within: float = PATIENCE) -> None:
        """Wait until each operator has seen what this test wrote, and has nothing left to do now.

        Looks asked for by `RequeueAfter`, `Wait` or a resync may still come: wait for those with `asyncio.sleep`, which
        takes no time where time is virtual. Raises AssertionError, with what failed, after `within` seconds.
        """
        if not self._running:
            raise AssertionError("no operator runs here that could settle: await operator(op) first")
        try:
            async with asyncio.timeout(within):
                for running in self._running:
                    await self._told(running)
                    await running.quiet()
        except TimeoutError:
            failures = [f"{key}: {error}" for one in self._running for key, error in one.failures.items()]
            raise AssertionError(
                f"not settled after {within:g} s; failing: {'; '.join(failures) or 'nothing'}"
            ) from None
        self._written.clear()
        self._deleted.clear()

    async def consistent(self) -> None:
        """Compare what each operator's cache was told with a list at the same version.

        Raises AssertionError with what differs. Right at any moment, settled or not, as long as the server answers.
        """
        found = [difference for running in self._running for difference in await running.differences()]
        if found:
            raise AssertionError("the cache is not what the server is: " + "; ".join(found))

    async def until(self, condition: Callable[[], Awaitable[Any]], within: float = PATIENCE) -> Any:
        """Ask again and again until the answer is true, and answer it. Raises AssertionError after `within` seconds."""
        try:
            async with asyncio.timeout(within):
                while True:
                    if answer := await condition():
                        return answer
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not so within {within:g} s") from None

    def faults(self, *faults: "Fault", seed: int = 0) -> "Faults":
        """From now on these befall requests to the server, this test's too unless a `user_agent` is named.

        With none, the trouble is over. Only the embedded server does this: on a real one the test is skipped.
        """
        if self._inject is None:
            import pytest

            pytest.skip("only the embedded server fails on purpose")
        from fairlead.server.faults import Plan

        answer: Faults = self._inject(Plan(faults, seed))
        return answer

    async def close(self) -> None:
        """Stop the operators and hang up."""
        await self._stack.aclose()
        for transport in self._opened:
            await transport.close()
        if self._inject is None:
            await asyncio.sleep(0.02)  # a cancelled request says goodbye over TLS behind its back

    def _transport(self) -> Transport:
        self._opened.append(self._open())
        return self._opened[-1]

    async def _told(self, running: Running) -> None:
        """Wait until its local view has what this test wrote."""
        local = running.services.local
        for obj in self._written:
            if local.watches(kind(obj.api_version, obj.kind)):
                await running.seen(obj)
        for obj in self._deleted:
            of = kind(obj.api_version, obj.kind)
            while local.watches(of) and (found := local.get(of, obj.name, obj.namespace)) and found.uid == obj.uid:
                if found.deleting:
                    break  # it has been told, and something holds the object
                await asyncio.sleep(0.01)

    async def _served(self, obj: Object) -> None:
        """Wait until its kind is: a definition that came just before it takes a moment."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.resolve(kind(obj.api_version, obj.kind))
                    return
                except NotServed:
                    await asyncio.sleep(0.05)

    async def _namespace(self, of: Kind) -> str | None:
        self._must_be_open()
        return self.namespace if (await self.client.resolve(of)).namespaced else None

    def _must_be_open(self) -> None:
        if self._opened_in is not asyncio.get_running_loop():
            raise RuntimeError(
                "a cluster works on the loop of the test itself: prepare it in an async function that the test calls, "
                "not in an async fixture"
            )

    async def _placed(self, obj: Object) -> Object:
        within = await self._namespace(kind(obj.api_version, obj.kind))
        if obj.namespace or not within:
            return obj
        return Object(obj | {"metadata": {**obj.metadata, "namespace": within}})
