"""Tests of predicates: which updates they see, and what they cannot hide."""

import asyncio
import logging

import pytest

import fairlead as fl
from fairlead.api.objects import Object
from fairlead.client.client import PatchType

Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


def counting_operator(passes, source=Thing, **options):
    op = fl.Operator("tester")

    @op.reconcile(source, **options)
    async def count(obj, ctx):
        passes.append(obj.name)

    return op


def thing(generation=None, status=None, **fields):
    metadata = {"name": "t"} | ({"generation": generation} if generation else {})
    return Object({"metadata": metadata, "status": status or {}, **fields})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (thing(1, spec={"a": 1}), thing(2, spec={"a": 2}), True),
        (thing(1, status={"a": 1}), thing(1, status={"a": 2}), False),
        (thing(data={"a": "1"}), thing(data={"a": "2"}), True),
        (thing(data={"a": "1"}, status={"a": 1}), thing(data={"a": "1"}), False),
        (thing(), thing(1), True),
    ],
)
def test_generation_changed_compares_content_if_there_is_no_generation(old, new, expected):
    assert fl.generation_changed(old, new) is expected


def test_updates_that_the_predicate_rejects_reconcile_nothing(run_in_virtual_time):
    async def test(cluster):
        passes = []
        await cluster.create("t")
        source = fl.select(Thing, when_changed=fl.generation_changed)
        async with cluster.running(counting_operator(passes, source, ready=None)) as running:
            await running.wait_until_idle()
            passes.clear()
            await cluster.patch_thing("t", metadata={"labels": {"a": "b"}})
            await asyncio.sleep(1)
            assert passes == []
            await cluster.patch_thing("t", spec={"a": "b"})
            await cluster.create("u")
            await asyncio.sleep(1)
            assert passes == ["t", "u"]

    run_in_virtual_time(test)


def test_predicates_of_children_and_watched_objects_see_old_and_new(run_in_virtual_time):
    async def test(cluster):
        passes, seen = [], []

        def never(old, new):
            seen.append((old.kind, old.labels, new.labels))
            return False

        op = counting_operator(
            passes,
            owns=[fl.select(fl.ConfigMap, when_changed=never)],
            watches={fl.select(Other, when_changed=never): lambda other: ["t"]},
            ready=None,
        )
        owner = await cluster.create("t")
        child = fl.ConfigMap("child", "default")
        reference = {"apiVersion": Thing.api_version, "kind": "Thing", "name": "t", "uid": owner.uid}
        child["metadata"]["ownerReferences"] = [reference | {"controller": True}]
        await cluster.client.create(child)
        await cluster.create("o", kind=Other)
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            passes.clear()
            labels = {"metadata": {"labels": {"a": "b"}}}
            for kind, name in ((fl.ConfigMap, "child"), (Other, "o")):
                await cluster.client.patch(kind, name, "default", labels, type=PatchType.MERGE)
            await asyncio.sleep(1)
            assert passes == []
            assert seen == [("ConfigMap", {}, {"a": "b"}), ("Other", {}, {"a": "b"})]
            await cluster.client.delete(Other, "o", "default")
            await asyncio.sleep(1)
            assert passes == ["t"]

    run_in_virtual_time(test)


def test_a_predicate_never_hides_a_clean_up(run_in_virtual_time):
    async def test(cluster):
        passes, cleaned = [], []
        op = counting_operator(passes, fl.select(Thing, when_changed=lambda old, new: False))

        @op.cleanup(Thing)
        async def clean(obj, ctx):
            cleaned.append("now" in obj.annotations)
            if "now" not in obj.annotations:
                raise fl.Wait("NotYet")

        await cluster.create("t")
        async with cluster.running(op) as running:
            await running.wait_until_idle()
            await cluster.client.delete(Thing, "t", "default")
            await asyncio.sleep(1)
            assert cleaned
            assert not any(cleaned)
            await cluster.patch_thing("t", metadata={"annotations": {"now": "please"}})  # It is being deleted.
            await asyncio.sleep(1)
            assert cleaned[-1]

    run_in_virtual_time(test)


def test_a_predicate_that_raises_counts_as_true_and_is_logged_once(run_in_virtual_time, caplog):
    async def test(cluster):
        passes = []

        def broken(old, new):
            return new.spec["no such field"]

        await cluster.create("t")
        async with cluster.running(counting_operator(passes, fl.select(Thing, when_changed=broken))) as running:
            await running.wait_until_idle()
            for number in range(3):
                passes.clear()
                await cluster.patch_thing("t", spec={"number": number})
                await asyncio.sleep(1)
                assert passes

    caplog.set_level(logging.ERROR)
    run_in_virtual_time(test)
    messages = [record.getMessage() for record in caplog.records if "when_changed= function" in record.getMessage()]
    assert len(messages) == 1
    assert "broken raised for Thing default/t" in messages[0]


def test_a_predicate_with_wrong_arguments_is_rejected():
    with pytest.raises(fl.errors.DeclarationError, match=r"old, new"):
        counting_operator([], fl.select(Thing, when_changed=lambda obj: True))
