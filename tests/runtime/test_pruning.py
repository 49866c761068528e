"""Pruning: a pass deletes children only by an explicit statement. Children that stay by accident are reported."""

import asyncio
import itertools

import pytest

import fairlead as fl
from fairlead.client.client import Client, PatchType
from fairlead.runtime.definitions import install_missing

Parent = fl.kind("pruning.example.com/v1", "Parent")


@pytest.fixture
async def client(api):
    client = Client(api.transport(), fl.World(), user_agent="somebody-else")
    await install_missing(client, [Parent])
    return client


def operator(function, owns=(fl.ConfigMap,), **options):
    op = fl.Operator("parent")
    op.reconcile(Parent, owns=owns, **options)(function)
    return op


def children_of(obj):
    return [fl.ConfigMap(name, data={"of": obj.name}) for name in obj.spec["children"]]


async def apply_then_prune(obj, ctx):
    for child in children_of(obj):
        await ctx.apply(child)
    await ctx.prune(fl.ConfigMap)


async def prune_all_kinds(obj, ctx):
    await ctx.apply_all(children_of(obj))
    await ctx.prune()


async def apply_a_complete_set(obj, ctx):
    await ctx.apply_all(children_of(obj), complete=True)


async def names(client, api, kind=fl.ConfigMap):
    found = (await client.list(kind, api.namespace)).items
    return sorted(obj.name for obj in found if obj.name != "kube-root-ca.crt")


class Run:
    """A running operator and its one parent."""

    def __init__(self, running, client, api):
        self.running, self.client, self.api = running, client, api

    async def change(self, **spec):
        patch = {"spec": spec}
        edited = await self.client.patch(Parent, "p", self.api.namespace, patch, type=PatchType.MERGE)
        await self.running.wait_until_seen(edited)
        await self.running.wait_until_idle()
        return await names(self.client, self.api)


async def start(stack, op, client, api, *, tries=3, **spec):
    await client.create(Parent("p", api.namespace, spec=spec))
    running = await stack.enter_async_context(op.running(api.transport(), namespaces=[api.namespace], tries=tries))
    await running.wait_until_idle()
    return Run(running, client, api)


@pytest.fixture
async def stack():
    from contextlib import AsyncExitStack

    async with AsyncExitStack() as stack:
        yield stack


@pytest.mark.parametrize("handler", [apply_then_prune, prune_all_kinds, apply_a_complete_set])
async def test_explicit_statement_prunes_and_foreign_objects_stay(api, client, stack, caplog, handler):
    caplog.set_level("INFO")
    run = await start(stack, operator(handler), client, api, children=["a", "b"])
    parent = await client.get(Parent, "p", api.namespace)
    reference = {"apiVersion": parent.api_version, "kind": parent.kind, "name": parent.name, "uid": parent.uid}
    stranger = fl.ConfigMap("stranger", api.namespace, data={"by": "hand"})
    stranger["metadata"]["ownerReferences"] = [reference]  # It has our owner reference, but we did not apply it.
    await client.create(stranger)
    assert await run.change(children=["b", "c"]) == ["b", "c", "stranger"]
    assert "pruned ConfigMap a: an earlier pass applied it and this pass did not" in caplog.text
    assert await run.change(children=[]) == ["stranger"]


async def test_pass_without_a_statement_prunes_nothing_and_warns_once(api, client, stack, caplog):
    """An early return is the common case: the handler means `nothing to do`, not `delete everything`."""

    async def reconcile(obj, ctx):
        if obj.spec.get("early"):
            return
        await apply_then_prune(obj, ctx)

    run = await start(stack, operator(reconcile), client, api, children=["a", "b"])
    assert caplog.records == []
    for number in range(3):
        assert await run.change(early=True, number=number) == ["a", "b"]
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2
    for name in ("a", "b"):
        assert sum(f"ConfigMap {name} was applied by an earlier pass" in warning for warning in warnings) == 1
    assert all("await ctx.prune(fl.ConfigMap)" in warning for warning in warnings)
    assert await run.change(early=None, children=["a"]) == ["a"]


@pytest.mark.parametrize("end", [ValueError("half way"), fl.Wait("NotYet"), fl.Terminal("BadSpec")])
async def test_pass_that_ends_before_the_statement_prunes_nothing(api, client, stack, caplog, end):
    async def reconcile(obj, ctx):
        await ctx.apply_all(children_of(obj))
        if obj.spec.get("end"):
            raise end
        await ctx.prune(fl.ConfigMap)

    run = await start(stack, operator(reconcile), client, api, children=["a", "b"])
    assert await run.change(children=["a"], end=True) == ["a", "b"]
    assert "ctx.prune" not in "".join(record.getMessage() for record in caplog.records)


async def test_child_whose_apply_failed_is_not_pruned(api, client, stack):
    """The handler catches the error and reaches the statement: the child is wanted, and the server has an older one."""

    async def reconcile(obj, ctx):
        for name, data in obj.spec["children"].items():
            try:
                await ctx.apply(fl.ConfigMap(name, data=data))
            except fl.ApiError:
                ctx.log.info("rejected")
        await ctx.prune(fl.ConfigMap)

    run = await start(stack, operator(reconcile), client, api, children={"a": {"x": "1"}, "b": {"x": "1"}})
    assert await run.change(children={"a": {"no key/": "1"}, "b": None}) == ["a"]


async def test_error_in_a_complete_set_prunes_nothing(api, client, stack):
    async def reconcile(obj, ctx):
        payloads = [fl.ConfigMap(name, data=data) for name, data in obj.spec["children"].items()]
        await ctx.apply_all(payloads, complete=True)

    run = await start(stack, operator(reconcile), client, api, children={"a": {"x": "1"}, "b": {"x": "1"}})
    assert await run.change(children={"a": {"no key/": "1"}, "b": None}) == ["a", "b"]


@pytest.mark.parametrize("names_the_kind", [False, True])
@pytest.mark.parametrize("complete", [False, True])
async def test_secrets_are_pruned_only_if_their_kind_is_named(api, client, stack, caplog, complete, names_the_kind):
    async def reconcile(obj, ctx):
        wanted = [kind(name) for name in obj.spec["children"] for kind in (fl.ConfigMap, fl.Secret)]
        await ctx.apply_all(wanted, complete=complete)
        if not complete:
            await ctx.prune()
        if names_the_kind:
            await ctx.prune(fl.Secret)

    op = operator(reconcile, owns=[fl.ConfigMap, fl.Secret])
    run = await start(stack, op, client, api, children=["a"])
    assert await run.change(children=[]) == []
    assert ("a" in await names(client, api, fl.Secret)) is not names_the_kind
    assert ("ctx.prune(fl.Secret)" in caplog.text) is not names_the_kind


async def test_persistent_volume_claims_and_others_must_be_named(api, client):
    from fairlead.writes.prune import must_be_named

    named = (fl.PersistentVolumeClaim, fl.Namespace, fl.CustomResourceDefinition, fl.Secret)
    assert all(must_be_named(kind) for kind in named)
    assert not any(must_be_named(kind) for kind in (fl.ConfigMap, fl.Pod, fl.Service, Parent))


@pytest.mark.parametrize("names_the_kind", [False, True])
async def test_apply_after_prune_is_rejected_at_the_first_pass(api, client, stack, caplog, names_the_kind):
    """Otherwise every pass would delete the child and create it again."""
    passes = itertools.count(1)

    async def reconcile(obj, ctx):
        if next(passes) > 4:
            raise fl.Terminal("Loop")
        await ctx.prune(*[fl.ConfigMap] if names_the_kind else [])
        await ctx.apply_all(children_of(obj)) if names_the_kind else await ctx.apply(children_of(obj)[0])

    await start(stack, operator(reconcile), client, api, children=["a"], tries=2)
    ready = (await client.get(Parent, "p", api.namespace)).condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "HandlerError")
    assert "test_pruning.py:" in ready["message"]
    assert "apply all children first, then prune" in ready["message"]
    assert await names(client, api) == []


async def test_child_that_was_applied_before_the_prune_may_be_applied_again(api, client, stack):
    async def reconcile(obj, ctx):
        await apply_then_prune(obj, ctx)
        await ctx.apply(children_of(obj)[0])
        await ctx.apply(fl.ConfigMap("unowned", data={"a": "1"}), owned=False)

    run = await start(stack, operator(reconcile), client, api, children=["a"])
    assert await names(client, api) == ["a", "unowned"]
    assert run.running.failures == {}


async def test_complete_set_of_unowned_objects_is_rejected(api, client, stack):
    async def reconcile(obj, ctx):
        await ctx.apply_all([], owned=False, complete=True)

    run = await start(stack, operator(reconcile), client, api, tries=1, children=[])
    assert "leave out owned=False" in next(iter(run.running.failures.values()))


async def test_prune_returns_what_it_deleted_also_in_a_thread(api, client, stack):
    deleted = []

    def reconcile(obj, ctx):
        ctx.apply_all(children_of(obj))
        deleted.extend(child.name for child in ctx.prune(fl.ConfigMap))

    run = await start(stack, operator(reconcile), client, api, children=["a", "b"])
    assert await run.change(children=["b"]) == ["b"]
    assert deleted == ["a"]


def test_requeue_after_a_prune_statement_prunes(run_in_virtual_time):
    async def test(cluster):
        async def reconcile(obj, ctx):
            for name in obj.spec["children"]:
                await ctx.apply(fl.ConfigMap(name, data={}))
            await ctx.prune(fl.ConfigMap)
            raise fl.RequeueAfter(60)

        op = fl.Operator("parent")
        op.reconcile(fl.kind("test.example.com/v1", "Thing"), owns=[fl.ConfigMap])(reconcile)
        await cluster.create("thing", spec={"children": ["a", "b"]})
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            await cluster.patch_thing("thing", spec={"children": ["a"]})
            await asyncio.sleep(1)
            assert "b" not in {obj.name for obj in (await cluster.client.list(fl.ConfigMap, "default")).items}

    run_in_virtual_time(test)
