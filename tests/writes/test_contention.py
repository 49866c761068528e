"""Many writers on one object, half of them foreign PUT loops: all our writes succeed with about one request each."""

import asyncio
import contextlib

import pytest
from workbench import WIDGET, FaultyTransport

from fairlead.api.errors import Conflict
from fairlead.client.client import Client
from fairlead.writes import StatusReport, Writer, decide, status


async def put_loop(bench, name, subresource, landed):
    """Read, change own fields and PUT without end. Ignore conflicts."""
    count = 0
    while True:
        count += 1
        obj = await bench.other.get(WIDGET, "w", bench.namespace)
        if subresource:
            obj["status"]["counts"][name] = count
        else:
            obj["metadata"].setdefault("labels", {})[name] = str(count)
            obj["spec"] = {**obj.spec, "note": f"{name}-{count}"}
        with contextlib.suppress(Conflict):
            await bench.other.replace(obj, subresource=subresource)
            landed.set()


async def count_up(writer, widget, mine, times):
    for _ in range(times):

        def increment(draft):
            draft.status["counts"][mine] = (draft.status["counts"].get(mine) or 0) + 1

        widget = (await decide(writer, WIDGET, widget, increment)).object


@pytest.mark.parametrize(("writers", "times"), [(2, 40), (8, 10), (32, 3)])
async def test_decisions_beside_put_loops_need_about_one_request_each(bench, writers, times):
    half = writers // 2
    widget = await bench.widget(spec={"size": 1}, status={"counts": {"seed": 0}})
    wires = [FaultyTransport(bench.transport) for _ in range(half)]  # Like separate processes: they share nothing.
    ours = [Writer(Client(wire, bench.world), bench.world, f"ours-{n}") for n, wire in enumerate(wires)]
    landed = asyncio.Event()
    foreign = [asyncio.create_task(put_loop(bench, f"f{n}", "status" if n % 2 else None, landed)) for n in range(half)]
    try:
        await landed.wait()  # The PUT loops are running. Beside our writes, some of them rarely succeed again.
        await asyncio.gather(*(count_up(writer, widget, f"o{n}", times) for n, writer in enumerate(ours)))
    finally:
        for task in foreign:
            task.cancel()
        await asyncio.gather(*foreign, return_exceptions=True)
    counts = (await bench.live(widget)).status["counts"]
    assert [counts[f"o{n}"] for n in range(half)] == [times] * half
    requests = sum(len(wire.sent) for wire in wires)
    assert requests <= 1.1 * times * half


async def test_condition_is_added_in_one_request_while_others_write_the_list(bench):
    """The worst case: someone changes a foreign condition just before each of our writes."""
    theirs = [{"type": f"F{n}", "status": "True", "message": "0"} for n in range(4)]
    widget = await bench.widget(status={"conditions": theirs})
    messages = []

    async def interfere():
        bench.wire.first = [interfere]
        live = await bench.live(widget)
        messages.append(str(len(messages)))
        new = [{**c, "message": messages[-1]} if "F" in c["type"] else c for c in live.status["conditions"]]
        await bench.merge(live, {"status": {"conditions": new}}, "status")

    bench.wire.first = [interfere]
    for n in range(20):
        report = StatusReport(1)
        report.condition(f"O{n}", True, "Because")
        widget = await status.write_status(bench.writer, WIDGET, widget, report)
    assert len(bench.wire.sent) == len(messages) == 20
    conditions = (await bench.live(widget)).status["conditions"]
    assert [c["type"] for c in conditions] == [f"F{n}" for n in range(4)] + [f"O{n}" for n in range(20)]
    assert [c["message"] for c in conditions[:4]] == ["19"] * 4


async def test_foreign_label_never_rejects_a_status_report(bench):
    """Someone labels 200 objects between our read and our report: no conflict, one request each."""
    for n in range(200):
        widget = await bench.widget(f"w{n}")
        await bench.merge(widget, {"metadata": {"labels": {"theirs": "x"}}})
        report = StatusReport(1)
        report.condition("Ready", True, "Because")
        await status.write_status(bench.writer, WIDGET, widget, report)
        assert bench.wire.writes == ["PATCH"]
        assert bench.wire.reads == []
