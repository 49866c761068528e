"""Tests of every write function after a lost response or request: it reads the object and writes once."""

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


async def create_child(env, owner):
    """Create a child without a fault, so that the fault affects only the next write."""
    lost_before, cancelled_before, env.faulty_transport.lost_responses, env.faulty_transport.cancelled_writes = (
        env.faulty_transport.lost_responses,
        env.faulty_transport.cancelled_writes,
        0,
        0,
    )
    created = await apply(env.writer, WIDGET("child", spec={"size": 1}), owner=owner)
    env.faulty_transport.lost_responses, env.faulty_transport.cancelled_writes = lost_before, cancelled_before
    env.faulty_transport.forget_requests()
    return created


async def do_apply(env, owner):
    await apply(env.writer, WIDGET("child", spec={"size": 1}), owner=owner)
    assert (await env.foreign_client.get(WIDGET, "child", env.namespace)).spec["size"] == 1


async def do_change(env, owner):
    await create_child(env, owner)
    await apply(env.writer, WIDGET("child", spec={"size": 2}), owner=owner)
    assert (await env.foreign_client.get(WIDGET, "child", env.namespace)).spec["size"] == 2


async def do_decide(env, owner):
    def count(draft):
        if "n" not in draft.status.setdefault("counts", {}):
            draft.status["counts"]["n"] = 1
        return draft.status["counts"]["n"]

    assert (await decide(env.writer, WIDGET, owner, count)).result == 1
    assert (await env.get_live(owner)).status["counts"] == {"n": 1}


async def do_report(env, owner):
    report = StatusReport(owner.generation)
    report.condition("Ready", True, "Because")
    await status.write_status(env.writer, WIDGET, owner, report)
    assert [condition["type"] for condition in (await env.get_live(owner)).status["conditions"]] == ["Ready"]


async def do_finalizers(env, owner):
    with_finalizer = await finalizers.add(env.writer, WIDGET, owner, OURS)
    assert with_finalizer.finalizers == [OURS]
    env.faulty_transport.lost_responses = 1
    await finalizers.remove(env.writer, WIDGET, with_finalizer, OURS)
    assert (await env.get_live(owner)).finalizers == []


async def do_last_finalizer(env, owner):
    """Remove the last finalizer, which deletes the object. The read after a lost response finds nothing, a success."""
    await env.merge_patch(owner, {"metadata": {"finalizers": [OURS]}})
    await env.foreign_client.delete(WIDGET, owner.name, owner.namespace)
    await finalizers.remove(env.writer, WIDGET, await env.get_live(owner), OURS)
    assert not await env.exists(owner)


async def do_default(env, owner):
    widget_with_defaults = await defaults.fill(env.writer, WIDGET, owner, {"spec": {"note": "x"}})
    assert widget_with_defaults.spec == {"size": 1, "note": "x"}


async def do_delete(env, owner):
    created = await env.config_map()
    await delete(env.writer, ConfigMap, created, unchanged=True)
    assert not await env.exists(created)


async def do_prune(env, owner):
    created = await create_child(env, owner)
    assert [pruned.name for pruned in await prune(env.writer, owner, WIDGET, [created], keep=[])] == ["child"]
    assert not await env.exists(created)


async def do_create_only(env, owner):
    created = await create_only(env.writer, ConfigMap("s", env.namespace, data={"a": "1"}))
    assert created["data"] == {"a": "1"}


async def do_migrate(env, owner):
    old = await env.foreign_client.create(WIDGET("old", env.namespace, spec={"note": "x"}), field_manager="before")
    migration = await migrate(env.writer, WIDGET, old, fields=["spec"], managers=["before"])
    assert MANAGER in [entry["manager"] for entry in migration.object.metadata["managedFields"]]


DISCIPLINES = [value for name, value in list(globals().items()) if name.startswith("do_")]


@pytest.mark.parametrize("write_function", DISCIPLINES, ids=lambda write_function: write_function.__name__[3:])
async def test_lost_answer_is_looked_up_and_the_write_is_not_repeated(env, write_function):
    owner = await env.widget("owner", spec={"size": 1})
    env.faulty_transport.lost_responses = 1
    await write_function(env, owner)
    assert len(env.faulty_transport.writes) == (2 if write_function is do_finalizers else 1)
    assert env.faulty_transport.reads


@pytest.mark.parametrize("write_function", DISCIPLINES, ids=lambda write_function: write_function.__name__[3:])
async def test_cancelled_write_blocks_nobody_and_can_be_repeated(env, write_function):
    owner = await env.widget("owner", spec={"size": 1})
    env.faulty_transport.cancelled_writes = 1
    with pytest.raises(asyncio.CancelledError):
        await write_function(env, owner)
    assert not env.writer.locks._locks
