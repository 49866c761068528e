"""Random histories of our writes and foreign writes, from stale views, with others in between and answers lost.

Held after each step: nothing foreign is changed or lost, no decision is overwritten, nothing that was seen is revived,
no stranger is touched. Held at the end: everything converges, and then nothing is sent.
"""

import asyncio
import contextlib
from types import SimpleNamespace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbench import WIDGET, Bench, install

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import NotFound, Unknown
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.writes import Foreign, Report, WriteError, apply, decide, defaults, finalizers, status

OURS = "o.x/fin"


class History:
    """One widget, its child, what others have put into them, and what this controller has seen."""

    def __init__(self, bench):
        self.bench = bench
        self.desired = "0"
        self.theirs = {}  # what others own of the widget and must stay: (where, name) -> value
        self.childs = {}  # the same of the child
        self.plan = None
        self.stranger = None  # the child's name as someone else made it, whole
        self.seen = set()  # uids of our children that this controller saw or made
        self.widget = None

    async def start(self):
        await self.bench.other.create(WIDGET("w", self.bench.namespace, spec={"size": 1}), field_manager="user")
        await self.sync()

    async def child(self):
        with contextlib.suppress(NotFound):
            return await self.bench.other.get(ConfigMap, "c", self.bench.namespace)
        return None

    # What others do. `n` makes two of each.

    async def label(self, n):
        await self.bench.merge(self.widget, {"metadata": {"labels": {f"f{n}": str(len(self.theirs))}}})
        self.theirs["labels", f"f{n}"] = str(len(self.theirs))

    async def finalizer(self, n):
        live = await self.bench.live(self.widget)
        if f"f.x/{n}" not in live.finalizers:
            await self.bench.merge(live, {"metadata": {"finalizers": [f"f.x/{n}", *live.finalizers]}})
            self.theirs["finalizers", f"f.x/{n}"] = True

    async def condition(self, n):
        live = await self.bench.live(self.widget)
        others = [c for c in live.status.get("conditions", ()) if c["type"] != f"F{n}"]
        new = {"type": f"F{n}", "status": "True", "message": str(len(self.theirs))}
        await self.bench.merge(live, {"status": {"conditions": [new, *others]}}, subresource="status")
        self.theirs["conditions", f"F{n}"] = str(len(self.theirs))

    async def note(self, n):
        await self.bench.merge(self.widget, {"spec": {"note": str(n)}})
        self.theirs["spec", "note"] = str(n)

    async def other_plan(self, n):
        if self.plan is None and "plan" not in (await self.bench.live(self.widget)).status:
            await self.bench.merge(self.widget, {"status": {"plan": {"id": f"theirs-{n}"}}}, subresource="status")

    async def data(self, n):
        if (live := await self.child()) is not None:
            await self.bench.merge(live, {"data": {f"t{n}": "x"}, "metadata": {"labels": {"f": str(n)}}})
            self.childs.update({("data", f"t{n}"): "x", ("labels", "f"): str(n)})
            self.stranger = self.stranger and await self.child()

    async def drift(self, n):
        live = await self.child()
        if live is not None and self.stranger is None:
            await self.bench.merge(live, {"data": {"text": "drift"}})

    async def delete_child(self, n):
        with contextlib.suppress(NotFound):
            await self.bench.other.delete(ConfigMap, "c", self.bench.namespace)
        self.childs, self.stranger = {}, None

    async def squat(self, n):
        await self.delete_child(n)
        body = ConfigMap("c", self.bench.namespace, data={"text": "stranger"})
        self.stranger = await self.bench.other.create(body, field_manager="squatter")

    # What this controller does, from what it has seen.

    async def sync(self, n=0):
        """The watch catches up."""
        self.widget = self.bench.view.put(WIDGET, await self.bench.other.get(WIDGET, "w", self.bench.namespace))
        live = await self.child()
        self.bench.view.objects.pop(("ConfigMap", self.bench.namespace, "c"), None)
        if live is not None:
            self.bench.view.put(ConfigMap, live)
            if self.stranger is None:
                self.seen.add(live.uid)

    async def apply(self, n):
        if n:
            self.desired = str(int(self.desired) + 1)
        known = self.bench.view.version(ConfigMap, "c", self.bench.namespace)
        before = self.seen.copy()
        made = await apply(self.bench.cached, ConfigMap("c", data={"text": self.desired}), owner=self.widget)
        assert made.uid in before or known is None or known[0] not in before, "what was seen is gone and was made anew"
        self.seen.add(made.uid)

    async def decide(self, n):
        def plan_for(draft):
            if draft.status.get("plan"):
                return draft.status["plan"]["id"]
            draft.status["plan"] = {"id": f"ours-{n}"}
            return f"ours-{n}"

        decided = await decide(self.bench.cached, WIDGET, self.widget, plan_for)
        assert decided.result == decided.object.status["plan"]["id"]

    async def report(self, n):
        report = Report(self.widget.generation)
        report.condition("Ready", bool(n), "Because")
        await status.flush(self.bench.cached, WIDGET, self.widget, report)

    async def hold(self, n):
        await finalizers.add(self.bench.cached, WIDGET, self.widget, OURS)

    async def release(self, n):
        await finalizers.remove(self.bench.cached, WIDGET, self.widget, OURS)

    async def default(self, n):
        await defaults.fill(self.bench.cached, WIDGET, self.widget, {"spec": {"note": "default", "size": 9}})
        live = await self.bench.live(self.widget)
        self.theirs.setdefault(("spec", "note"), live.spec.get("note"))

    # What must hold

    async def check(self):
        live, child = await self.bench.live(self.widget), await self.child()
        found = {
            **{("labels", name): value for name, value in live.labels.items()},
            **{("finalizers", name): True for name in live.finalizers},
            **{("conditions", c["type"]): c.get("message") for c in live.status.get("conditions", ())},
            ("spec", "note"): live.spec.get("note"),
        }
        assert {key: found.get(key) for key in self.theirs} == self.theirs
        assert live.finalizers.count(OURS) <= 1
        plan = (live.status.get("plan") or {}).get("id")
        assert self.plan in (None, plan), "a decision was overwritten"
        self.plan = plan
        if self.stranger is not None:
            assert child == self.stranger
        elif child is not None:
            have = {("data", k): v for k, v in child.get("data", {}).items()}
            have |= {("labels", k): v for k, v in child.labels.items()}
            assert {key: have.get(key) for key in self.childs} == self.childs

    async def converge(self):
        """Passes of a reconcile, each after the watch caught up; the last one sends nothing."""
        for _ in range(3):
            await self.sync()
            self.bench.wire.forget()
            with contextlib.suppress(Foreign):
                await self.hold(0)
                await self.decide(0)
                await self.report(1)
                await self.apply(0)
        assert self.bench.wire.writes == ([] if self.stranger is None else ["PATCH"])
        live, child = await self.bench.live(self.widget), await self.child()
        assert OURS in live.finalizers
        assert live.is_true("Ready")
        assert "plan" in live.status
        assert child["data"]["text"] == (self.desired if self.stranger is None else "stranger")


FOREIGN = ["label", "finalizer", "condition", "note", "other_plan", "data", "drift", "delete_child", "squat"]
OWN = ["apply", "decide", "report", "hold", "release", "default", "sync"]

foreign = st.tuples(st.sampled_from(FOREIGN), st.integers(0, 1))
own = st.tuples(st.sampled_from(OWN), st.integers(0, 1), st.lists(foreign, max_size=2), st.booleans())


async def run(history):
    server = Server(World(), tokens=["t"])
    transport = server.transport()
    bench = Bench(SimpleNamespace(namespace="default"), transport)
    await install(bench.other)
    state = History(bench)
    await state.start()
    for step in history:
        if len(step) == 2:
            await getattr(state, step[0])(step[1])
        else:
            name, n, between, lost = step
            bench.wire.first = [lambda between=between: others(state, between)] if between else []
            bench.wire.lost = int(lost)
            with contextlib.suppress(WriteError, Unknown):
                await getattr(state, name)(n)
            bench.wire.first, bench.wire.lost = [], 0
        await state.check()
    await state.converge()
    await state.check()
    await transport.close()


async def others(state, steps):
    for name, n in steps:
        await getattr(state, name)(n)


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(foreign, own), max_size=14))
def test_nothing_foreign_is_lost_nothing_is_revived_and_everything_converges(history):
    asyncio.run(run(history))
