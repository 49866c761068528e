"""Tests of many writers on one object, half of them foreign: our writes succeed with about one request each."""

import asyncio
import contextlib

import pytest
from workbench import WIDGET, FaultyTransport

from fairlead.api.errors import Conflict
from fairlead.client.client import Client
from fairlead.writes import StatusReport, Writer, decide, status


async def put_forever(env, name, subresource, first_put_done):
    """Act as a foreign writer: read the object, change own fields and PUT it, until cancelled. Ignore conflicts."""
    count = 0
    while True:
        count += 1
        obj = await env.foreign_client.get(WIDGET, "w", env.namespace)
        if subresource:
            obj["status"]["counts"][name] = count
        else:
            obj["metadata"].setdefault("labels", {})[name] = str(count)
            obj["spec"] = {**obj.spec, "note": f"{name}-{count}"}
        with contextlib.suppress(Conflict):
            await env.foreign_client.replace(obj, subresource=subresource)
            first_put_done.set()


async def increment_repeatedly(writer, widget, counter_name, times):
    for _ in range(times):

        def increment(draft):
            draft.status["counts"][counter_name] = (draft.status["counts"].get(counter_name) or 0) + 1

        widget = (await decide(writer, WIDGET, widget, increment)).object


@pytest.mark.parametrize(("writers", "times"), [(2, 40), (8, 10), (32, 3)])
async def test_decisions_beside_put_loops_need_about_one_request_each(env, writers, times):
    foreign_count = writers // 2
    widget = await env.widget(spec={"size": 1}, status={"counts": {"seed": 0}})
    transports = [
        FaultyTransport(env.transport) for _ in range(foreign_count)
    ]  # Like separate processes: they share nothing.
    own_writers = [
        Writer(Client(transport, env.world), env.world, f"ours-{number}") for number, transport in enumerate(transports)
    ]
    first_put_done = asyncio.Event()
    foreign_tasks = [
        asyncio.create_task(put_forever(env, f"f{number}", "status" if number % 2 else None, first_put_done))
        for number in range(foreign_count)
    ]
    try:
        await first_put_done.wait()  # The PUT loops are running. Beside our writes, some of them rarely succeed again.
        await asyncio.gather(
            *(increment_repeatedly(writer, widget, f"o{number}", times) for number, writer in enumerate(own_writers))
        )
    finally:
        for task in foreign_tasks:
            task.cancel()
        await asyncio.gather(*foreign_tasks, return_exceptions=True)
    counts = (await env.get_live(widget)).status["counts"]
    assert [counts[f"o{number}"] for number in range(foreign_count)] == [times] * foreign_count
    requests = sum(len(transport.sent_requests) for transport in transports)
    assert requests <= 1.1 * times * foreign_count


async def test_condition_is_added_in_one_request_while_others_write_the_list(env):
    """Tests the worst case: another writer changes a foreign condition just before each of our writes."""
    foreign_conditions = [{"type": f"F{number}", "status": "True", "message": "0"} for number in range(4)]
    widget = await env.widget(status={"conditions": foreign_conditions})
    messages = []

    async def write_foreign_conditions():
        env.faulty_transport.before_writes = [write_foreign_conditions]
        live = await env.get_live(widget)
        messages.append(str(len(messages)))
        new = [
            {**condition, "message": messages[-1]} if "F" in condition["type"] else condition
            for condition in live.status["conditions"]
        ]
        await env.merge_patch(live, {"status": {"conditions": new}}, "status")

    env.faulty_transport.before_writes = [write_foreign_conditions]
    for number in range(20):
        report = StatusReport(1)
        report.condition(f"O{number}", True, "Because")
        widget = await status.write_status(env.writer, WIDGET, widget, report)
    assert len(env.faulty_transport.sent_requests) == len(messages) == 20
    conditions = (await env.get_live(widget)).status["conditions"]
    assert [condition["type"] for condition in conditions] == [f"F{number}" for number in range(4)] + [
        f"O{number}" for number in range(20)
    ]
    assert [condition["message"] for condition in conditions[:4]] == ["19"] * 4


async def test_foreign_label_never_rejects_a_status_report(env):
    """Tests 200 objects that another writer labels between our read and our report: one request each, no conflict."""
    for number in range(200):
        widget = await env.widget(f"w{number}")
        await env.merge_patch(widget, {"metadata": {"labels": {"theirs": "x"}}})
        report = StatusReport(1)
        report.condition("Ready", True, "Because")
        await status.write_status(env.writer, WIDGET, widget, report)
        assert env.faulty_transport.writes == ["PATCH"]
        assert env.faulty_transport.reads == []
