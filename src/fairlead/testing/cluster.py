"""The test cluster: create and change objects as a user would, and run operators."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

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
    from fairlead.server.faults import Fault, FaultInjector

TIMEOUT = 90.0
"""Seconds that a test waits: twice the longest back-off and more. In virtual time waiting costs nothing."""


class StartOperator(Protocol):
    """The type of the pytest fixture `operator`, a function that runs an operator until the test ends."""

    async def __call__(self, operator: Operator, **options: Unpack[Options]) -> Running:
        """Start the operator on the test's cluster, and return the running operator."""


class Cluster:
    """A new namespace of an API server, for one test.

    `create`, `edit` and `delete` act as a user or another program. A namespaced object without a namespace goes to
    `namespace`.
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
        self.request_counts: list[Counter[tuple[str, int]]] = []
        """What each operator sent, in the order of `start`: (method, status) -> count. A watch counts as a GET."""

    async def open(self) -> None:
        """Create the test's namespace. The fixture `cluster` calls this before the test."""
        self._opened_in = asyncio.get_running_loop()
        await self.client.create(Namespace(self.namespace))

    # Act as a user or another program.

    async def apply(self, *files: str | Path) -> None:
        """Apply the objects of YAML or JSON files, CRDs first, like `kubectl apply --server-side -f`."""
        objects = [obj for file in files for obj in manifests.read_objects(Path(file))]
        for obj in sorted(objects, key=manifests.is_prerequisite, reverse=True):
            await self._wait_until_served(obj)
            self._written.append(await self.client.apply(await self._set_namespace(obj), field_manager="test"))

    async def create(self, obj: Mapping[str, Any]) -> Object:
        """Create an object. If its kind has no CRD, install a CRD first, with a schema that allows every field."""
        obj = Object(obj)
        await install_missing(self.client, [kind(obj.api_version, obj.kind)])
        self._written.append(await self.client.create(await self._set_namespace(obj)))
        return self._written[-1]

    async def edit(self, obj: Mapping[str, Any], *, subresource: str | None = None, **fields: Any) -> Object:
        """Merge-patch fields of an object: `edit(obj, spec={"size": 3})`. `subresource="status"` patches the status."""
        obj = Object(obj)
        edited = await self.client.patch(
            kind(obj.api_version, obj.kind),
            obj.name,
            obj.namespace,
            fields,
            type=PatchType.MERGE,
            subresource=subresource,
        )
        self._written.append(edited)
        return edited

    async def delete(self, obj: Mapping[str, Any]) -> None:
        """Delete an object. An object with finalizers stays until the finalizers are removed."""
        obj = Object(obj)
        await self.client.delete(kind(obj.api_version, obj.kind), obj.name, obj.namespace)
        self._deleted.append(obj)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Read an object from the server. Return None if it does not exist."""
        try:
            return await self.client.get(kind, name, await self._resolve_namespace(kind, namespace))
        except NotFound:
            return None

    async def list(self, kind: Kind, namespace: str | None = None) -> "list[Object]":
        """List the objects of a kind from the server, in one namespace."""
        return (await self.client.list(kind, await self._resolve_namespace(kind, namespace))).items

    # Run operators.

    async def start(self, operator: Operator, **options: Unpack[Options]) -> Running:
        """Run an operator on this cluster until the test ends. Missing CRDs are installed, as by `create`."""
        if not isinstance(operator, Operator):
            raise TypeError(f"operator(…) takes a fairlead.Operator, not {type(operator).__name__}: await operator(op)")
        self._check_loop()
        controllers = operator.controllers.values()
        sources = [source for controller in controllers for source in controller.sources]
        kinds = [source.kind for source in sources if not source.cluster and not source.optional]
        await install_missing(self.client, [*kinds, *(indexed for indexed, _, _ in operator.indexes)])
        transport = CountingTransport(self._transport())
        self.request_counts.append(transport.counts)
        options = {"namespaces": [self.namespace], **options}
        running = await self._stack.enter_async_context(operator.running(transport, self.world, **options))
        self._running.append(running)
        return running

    async def wait_until_idle(self, within: float = TIMEOUT) -> None:
        """Wait until every operator has seen the writes of this test and has reconciled all objects.

        Does not wait for `RequeueAfter`, `Wait` or a resync: use `asyncio.sleep`, which takes no real time in virtual
        time. Raises AssertionError after `within` seconds, with the objects whose reconcile fails.
        """
        __tracebackhide__ = True
        if not self._running:
            raise AssertionError("no operator runs in this test: await operator(op) first")
        try:
            async with asyncio.timeout(within):
                for running in self._running:
                    await self._wait_until_seen(running)
                    await running.wait_until_idle()
        except TimeoutError:
            failures = [f"{key}: {error}" for running in self._running for key, error in running.failures.items()]
            raise AssertionError(
                f"still busy after {within:g} s; failing: {'; '.join(failures) or 'no object'}"
            ) from None
        self._written.clear()
        self._deleted.clear()

    async def check_caches(self) -> None:
        """Compare the cache of each operator with a list from the server at the same resourceVersion.

        Raises AssertionError with the differences. Can be called at any time, also while operators are busy.
        """
        __tracebackhide__ = True
        differences = [difference for running in self._running for difference in await running.find_differences()]
        if differences:
            raise AssertionError("the cache differs from the server: " + "; ".join(differences))

    async def wait_for(self, condition: Callable[[], Awaitable[Any]], within: float = TIMEOUT) -> Any:
        """Call `condition` until its result is true, and return that result. Raises AssertionError after `within` s."""
        __tracebackhide__ = True
        try:
            async with asyncio.timeout(within):
                while True:
                    if answer := await condition():
                        return answer
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"the condition was still false after {within:g} s") from None

    def faults(self, *faults: "Fault", seed: int = 0) -> "FaultInjector":
        """Inject faults into all later requests, in place of earlier faults. `faults()` ends all faults.

        The faults also affect the requests of the test itself, unless a fault names a `user_agent`. Only the embedded
        server injects faults: on a real server the test is skipped.
        """
        if self._inject is None:
            import pytest

            pytest.skip("only the embedded server injects faults")
        from fairlead.server.faults import Plan

        injected: FaultInjector = self._inject(Plan(faults, seed))
        return injected

    async def close(self) -> None:
        """Stop the operators and close all connections to the server."""
        await self._stack.aclose()
        for transport in self._opened:
            await transport.close()
        if self._inject is None:
            await asyncio.sleep(0.02)  # A cancelled request closes its TLS connection in the background.

    def _transport(self) -> Transport:
        self._opened.append(self._open())
        return self._opened[-1]

    async def _wait_until_seen(self, running: Running) -> None:
        """Wait until the operator's cache shows every write of this test."""
        watched = running.services.watched
        for obj in self._written:
            if watched.is_watched(kind(obj.api_version, obj.kind)):
                await running.wait_until_seen(obj)
        for obj in self._deleted:
            object_kind = kind(obj.api_version, obj.kind)
            while (cached := watched.peek(object_kind, obj.name, obj.namespace)) and cached.uid == obj.uid:
                if cached.deleting:
                    break  # The deletion was seen; a finalizer keeps the object.
                await asyncio.sleep(0.01)

    async def _wait_until_served(self, obj: Object) -> None:
        """Wait until the server serves the kind of the object, which takes a moment after its CRD was created."""
        async with asyncio.timeout(TIMEOUT):
            while True:
                try:
                    await self.client.resolve(kind(obj.api_version, obj.kind))
                    return
                except NotServed:
                    await asyncio.sleep(0.05)

    async def _resolve_namespace(self, object_kind: Kind, namespace: str | None = None) -> str | None:
        self._check_loop()
        return (namespace or self.namespace) if (await self.client.resolve(object_kind)).namespaced else None

    def _check_loop(self) -> None:
        if self._opened_in is not asyncio.get_running_loop():
            raise RuntimeError(
                "a cluster works only on the event loop of its test: prepare it in an async function that the test "
                "calls, not in an async fixture"
            )

    async def _set_namespace(self, obj: Object) -> Object:
        namespace = await self._resolve_namespace(kind(obj.api_version, obj.kind))
        if obj.namespace or not namespace:
            return obj
        return Object(obj | {"metadata": {**obj.metadata, "namespace": namespace}})
