"""Every write function if the answer is lost or the write never arrives: it reads the object and writes once."""

import asyncio

import pytest
from workbench import MANAGER, WIDGET

from fairlead.api.builtin import ConfigMap
from fairlead.writes import (
    StatusReport,
    apply,
    create_only,
    decide,
    defaults,
    delete,
    finalizers,
    migrate,
    prune,
    status,
)

OURS = "a.b/ours"


async def child(bench, owner):
    """Create a child first, so that the fault affects only the next write."""
    lost, cancelled, bench.wire.lost, bench.wire.cancelled = bench.wire.lost, bench.wire.cancelled, 0, 0
    made = await apply(bench.writer, WIDGET("child", spec={"size": 1}), owner=owner)
    bench.wire.lost, bench.wire.cancelled = lost, cancelled
    bench.wire.forget()
    return made


async def do_apply(bench, owner):
    await apply(bench.writer, WIDGET("child", spec={"size": 1}), owner=owner)
    assert (await bench.other.get(WIDGET, "child", bench.namespace)).spec["size"] == 1


async def do_change(bench, owner):
    await child(bench, owner)
    await apply(bench.writer, WIDGET("child", spec={"size": 2}), owner=owner)
    assert (await bench.other.get(WIDGET, "child", bench.namespace)).spec["size"] == 2


async def do_decide(bench, owner):
    def count(draft):
        if "n" not in draft.status.setdefault("counts", {}):
            draft.status["counts"]["n"] = 1
        return draft.status["counts"]["n"]

    assert (await decide(bench.writer, WIDGET, owner, count)).result == 1
    assert (await bench.live(owner)).status["counts"] == {"n": 1}


async def do_report(bench, owner):
    report = StatusReport(owner.generation)
    report.condition("Ready", True, "Because")
    await status.write_status(bench.writer, WIDGET, owner, report)
    assert [c["type"] for c in (await bench.live(owner)).status["conditions"]] == ["Ready"]


async def do_finalizers(bench, owner):
    held = await finalizers.add(bench.writer, WIDGET, owner, OURS)
    assert held.finalizers == [OURS]
    bench.wire.lost = 1
    await finalizers.remove(bench.writer, WIDGET, held, OURS)
    assert (await bench.live(owner)).finalizers == []


async def do_last_finalizer(bench, owner):
    """The removal deletes the object, so a read after the lost answer finds nothing, which counts as success."""
    await bench.merge(owner, {"metadata": {"finalizers": [OURS]}})
    await bench.other.delete(WIDGET, owner.name, owner.namespace)
    await finalizers.remove(bench.writer, WIDGET, await bench.live(owner), OURS)
    assert not await bench.exists(owner)


async def do_default(bench, owner):
    filled = await defaults.fill(bench.writer, WIDGET, owner, {"spec": {"note": "x"}})
    assert filled.spec == {"size": 1, "note": "x"}


async def do_delete(bench, owner):
    made = await bench.config_map()
    await delete(bench.writer, ConfigMap, made, unchanged=True)
    assert not await bench.exists(made)


async def do_prune(bench, owner):
    made = await child(bench, owner)
    assert [pruned.name for pruned in await prune(bench.writer, owner, WIDGET, [made], keep=[])] == ["child"]
    assert not await bench.exists(made)


async def do_create_only(bench, owner):
    made = await create_only(bench.writer, ConfigMap("s", bench.namespace, data={"a": "1"}))
    assert made["data"] == {"a": "1"}


async def do_migrate(bench, owner):
    old = await bench.other.create(WIDGET("old", bench.namespace, spec={"note": "x"}), field_manager="before")
    moved = await migrate(bench.writer, WIDGET, old, fields=["spec"], managers=["before"])
    assert MANAGER in [entry["manager"] for entry in moved.object.metadata["managedFields"]]


DISCIPLINES = [value for name, value in list(globals().items()) if name.startswith("do_")]


@pytest.mark.parametrize("go", DISCIPLINES, ids=lambda go: go.__name__[3:])
async def test_lost_answer_is_looked_up_and_the_write_is_not_repeated(bench, go):
    owner = await bench.widget("owner", spec={"size": 1})
    bench.wire.lost = 1
    await go(bench, owner)
    assert len(bench.wire.writes) == (2 if go is do_finalizers else 1)
    assert bench.wire.reads


@pytest.mark.parametrize("go", DISCIPLINES, ids=lambda go: go.__name__[3:])
async def test_cancelled_write_blocks_nobody_and_can_be_repeated(bench, go):
    owner = await bench.widget("owner", spec={"size": 1})
    bench.wire.cancelled = 1
    with pytest.raises(asyncio.CancelledError):
        await go(bench, owner)
    assert not bench.writer.locks._locks
