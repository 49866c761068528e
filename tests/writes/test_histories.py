"""Random histories of our writes and foreign writes, with a stale cache, writes in between and lost answers.

After each step: nothing foreign is changed or lost, no decision is overwritten, no object that was seen is recreated,
no foreign object is changed or deleted. At the end: everything converges, and then nothing is sent. What the histories
encountered is counted and printed (`-s`), and must include every kind of rejection. `make histories N=5000 SEED=7`
plays other random histories instead of the same ones each time.
"""

import asyncio
import contextlib
import dataclasses
import math
import os
from collections import Counter
from types import SimpleNamespace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from workbench import WIDGET, Bench, install

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import NotFound, UnknownOutcome
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.writes import (
    ForeignObject,
    ObjectDeleted,
    ObjectDeleting,
    ObjectReplaced,
    StatusReport,
    StatusSuperseded,
    WriteError,
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
from fairlead.writes.local_cache import NoCache

OURS = "o.x/fin"
CHILDREN = ("c0", "c1")
LISTENERS = [["a", "b"], ["b", "a"], ["a"]]
counts = Counter()


class History:
    """One widget, its children, a shared object, the fields of others in them, and what this controller has cached."""

    def __init__(self, bench):
        self.bench, self.writer = bench, bench.cached
        self.desired = 0
        self.theirs = {}  # Foreign fields that must stay while the object exists: uid -> {(where, name): value}.
        self.foreign_versions = {}  # uid -> version of the last foreign write to it.
        self.alive = {}  # uid -> name, at the last check.
        self.deletable = {}  # uid -> the newest version that someone asked to be deleted in this step
        self.foreign_objects = {}  # name -> foreign object, which we must not change.
        self.plan = None
        self.widget = None  # As this controller has cached it.
        self.applied = {}  # name -> uid of the child that the last apply returned.

    async def start(self):
        await self.make("w", spec={"size": 1, "options": {"once": "x"}}, manager="ours-old")
        await self.sync()
        self.sister = await self.make("sister")
        self.nephew = await apply(self.bench.cached, WIDGET("nephew", spec={"size": 1}), owner=self.sister)

    async def make(self, name, manager="maker", **fields):
        return await self.bench.other.create(WIDGET(name, self.bench.namespace, **fields), field_manager=manager)

    async def read(self, name, kind=WIDGET):
        with contextlib.suppress(NotFound):
            return await self.bench.other.get(kind, name, self.bench.namespace)
        return None

    # Foreign writes. `n` gives two variants of each.

    async def merge(self, live, patch, name, *leaves, subresource=None):
        """Make a foreign write to the object of that name, and record the fields of it that must stay."""
        after = await self.bench.merge(live, patch, subresource)
        self.foreign_versions[after.uid] = int(after.resource_version)
        self.theirs.setdefault(after.uid, {}).update(leaves)
        if name in self.foreign_objects:
            self.foreign_objects[name] = after

    async def label(self, n):
        value = str(sum(self.foreign_versions.values()))
        live = await self.read("w")
        await self.merge(live, {"metadata": {"labels": {f"f{n}": value}}}, "w", (("label", f"f{n}"), value))

    async def finalizer(self, n):
        live, name = await self.read("w"), f"f.x/{n}"
        if name not in live.finalizers and not live.deleting:
            patch = {"metadata": {"finalizers": [name, *live.finalizers]}}
            await self.merge(live, patch, "w", (("finalizer", name), True))

    async def delete_widget(self, n):
        """Delete the widget while a foreign finalizer holds it."""
        await self.finalizer(n)
        await self.bench.other.delete(WIDGET, "w", self.bench.namespace)
        live = await self.read("w")
        self.foreign_versions[live.uid] = int(live.resource_version)
        if "w" in self.foreign_objects:
            self.foreign_objects["w"] = live

    async def condition(self, n):
        """Write a foreign condition, at the start or at the end of the list."""
        live, value = await self.read("w"), str(sum(self.foreign_versions.values()))
        others = [c for c in live.status.get("conditions", ()) if c["type"] != f"F{n}"]
        theirs = [{"type": f"F{n}", "status": "True", "message": value}]
        patch = {"status": {"conditions": [*others, *theirs] if n else [*theirs, *others]}}
        await self.merge(live, patch, "w", (("condition", f"F{n}"), value), subresource="status")

    async def ready(self, n):
        """Overwrite our condition or our field with a wrong value."""
        live = await self.read("w")
        others = [c for c in live.status.get("conditions", ()) if c["type"] != "Ready"]
        theirs = {"conditions": [*others, {"type": "Ready", "status": "Unknown", "reason": "Theirs"}]}
        await self.merge(live, {"status": {"phase": "theirs"} if n else theirs}, "w", subresource="status")

    async def set_controller(self, n):
        """Give a foreign object a controller, so that it may not be adopted any more."""
        if CHILDREN[n] in self.foreign_objects:
            owner = {"apiVersion": WIDGET.api_version, "kind": "Widget", "name": "sister", "uid": self.sister.uid}
            references = {"metadata": {"ownerReferences": [{**owner, "controller": True}]}}
            await self.merge(self.foreign_objects[CHILDREN[n]], references, CHILDREN[n])

    async def observed(self, n):
        """Report on a newer generation, like a newer release of this controller."""
        live = await self.read("w")
        await self.merge(live, {"spec": {"size": live.spec["size"] + 1}}, "w")
        patch = {"status": {"observedGeneration": live.generation + 1}}
        await self.merge(live, patch, "w", (("observed", ""), live.generation + 1), subresource="status")

    async def note(self, n):
        await self.merge(await self.read("w"), {"spec": {"note": str(n)}}, "w", (("note", ""), str(n)))

    async def other_plan(self, n):
        live = await self.read("w")
        if "plan" not in live.status:
            patch = {"status": {"plan": {"id": f"theirs-{n}"}}}
            await self.merge(live, patch, "w", subresource="status")

    async def recreate_widget(self, n):
        """Delete the widget and its children, and create another widget of that name."""
        live = await self.read("w")
        await self.bench.merge(live, {"metadata": {"finalizers": None}})
        if not live.deleting:
            await self.bench.other.delete(WIDGET, "w", self.bench.namespace)
        self.allow_deletion(live)
        for name in CHILDREN:
            if name not in self.foreign_objects:
                await self.delete_child(CHILDREN.index(name))
        self.plan = None
        self.foreign_objects["w"] = await self.make("w", spec={"size": 1, "options": {"once": "x"}}, manager="ours-old")

    async def fields(self, n):
        """Add a foreign label, list item, and a field in one of our items."""
        name = CHILDREN[n]
        if (live := await self.read(name)) is not None:
            others = [item for item in live.spec.get("listeners", ()) if item["name"] != "z"]
            items = [{**item, "hostname": "theirs"} if item["name"] == "a" else item for item in others]
            patch = {"metadata": {"labels": {"f": str(n)}}, "spec": {"listeners": [{"name": "z"}, *items]}}
            mine = [(("item", "z"), None)]
            mine += [(("item", "a"), "theirs")] if any(item["name"] == "a" for item in items) else []
            await self.merge(live, patch, name, (("label", "f"), str(n)), *mine)

    async def drift(self, n):
        live = await self.read(CHILDREN[n])
        if live is not None and CHILDREN[n] not in self.foreign_objects:
            await self.merge(live, {"spec": {"size": 99}}, CHILDREN[n])

    async def delete_child(self, n):
        if (live := await self.read(CHILDREN[n])) is not None:
            await self.bench.other.delete(WIDGET, CHILDREN[n], self.bench.namespace)
            self.allow_deletion(live)
        self.foreign_objects.pop(CHILDREN[n], None)

    async def occupy_name(self, n):
        """Create a foreign object of that name. Variant 1 has our widget as an owner, which does not make it ours."""
        await self.delete_child(n)
        foreign_object = WIDGET(CHILDREN[n], self.bench.namespace, spec={"size": 7})
        if n:
            live = await self.read("w")
            ref = {"apiVersion": WIDGET.api_version, "kind": "Widget", "name": "w", "uid": live.uid}
            foreign_object["metadata"]["ownerReferences"] = [ref]
        self.foreign_objects[CHILDREN[n]] = await self.bench.other.create(foreign_object, field_manager="squatter")

    async def edit_shared(self, n):
        if (live := await self.read("s", ConfigMap)) is not None:
            await self.merge(live, {"data": {"a": "edited"}}, "s", (("data", "a"), "edited"))

    def allow_deletion(self, obj, version=math.inf):
        self.deletable[obj.uid] = max(version, self.deletable.get(obj.uid, 0))

    # Our writes, based on the cache.

    async def sync(self, n=0):
        """Let the cache catch up."""
        self.writer = dataclasses.replace(self.writer, cache=self.bench.view)
        view = self.bench.view
        self.widget = view.put(WIDGET, await self.read("w"))
        self.foreign_objects.pop("w", None)
        for kind, name in ((ConfigMap, "s"), *((WIDGET, name) for name in CHILDREN)):
            view.objects.pop((kind.kind, self.bench.namespace, name), None)
            if (live := await self.read(name, kind)) is not None:
                view.put(kind, live)

    async def restart(self, n):
        self.writer = dataclasses.replace(self.writer, last_writes={})
        self.applied.clear()

    async def unwatch(self, n):
        """Work without a cache until the next `sync`."""
        self.writer = dataclasses.replace(self.writer, cache=NoCache())

    def payload(self, name):
        spec = {"size": self.desired, "listeners": [{"name": name} for name in LISTENERS[self.desired % 3]]}
        return WIDGET(name, spec=spec)

    async def apply(self, n):
        name, watched = CHILDREN[n], self.writer.cache is self.bench.view
        known = self.bench.view.peek(WIDGET, name, self.bench.namespace)
        ours = known is not None and controller_of(known) == self.widget.uid
        seen = (known.uid if ours else None) if watched else self.applied.get(name)
        try:
            made = await apply(self.writer, self.payload(name), owner=self.widget)
        except ObjectDeleted:  # Raised once per deletion.
            self.applied.pop(name, None)
            raise
        self.applied[name] = made.uid
        if seen is not None and not self.is_concurrent:
            assert made.uid == seen, "an object that was seen and deleted was recreated"

    async def adopt(self, n):
        """Adopt a foreign object. Only one without a controller may be adopted, and its fields stay."""
        name = CHILDREN[n]
        try:
            made = await apply(self.writer, self.payload(name), owner=self.widget, adopt=True)
            self.applied[name] = made.uid
        except ObjectDeleted:
            self.applied.pop(name, None)
            raise
        finally:  # Lost and cancelled writes may have happened.
            after = await self.read(name)
            theirs = self.foreign_objects.get(name)
            if theirs is not None and after is not None and controller_of(after) == self.widget.uid:
                assert after.uid == theirs.uid, "a foreign object was replaced"
                assert controller_of(theirs) is None, "adopted from a controller"
                del self.foreign_objects[name]

    async def change(self, n):
        self.desired += 1
        await self.apply(n)

    async def decide(self, n):
        def plan_for(draft):
            if draft.status.get("plan"):
                return draft.status["plan"]["id"]
            draft.status["plan"] = {"id": f"ours-{n}"}
            return f"ours-{n}"

        decided = await decide(self.writer, WIDGET, self.widget, plan_for)
        assert decided.result == decided.object.status["plan"]["id"]

    async def mirror(self, n):
        """Copy the note to the status: both must agree after the write."""

        def copy_note(draft):
            draft.status["phase"] = draft.spec.get("note") or "none"

        after = (await decide(self.writer, WIDGET, self.widget, copy_note)).object
        assert after.status["phase"] == after.spec.get("note", "none"), "the decision used an outdated note"

    async def tally(self, n):
        """Write the number of conditions to the status."""

        def count(draft):
            draft.status["counts"] = {"conditions": len(draft.status.get("conditions") or ())}

        after = (await decide(self.writer, WIDGET, self.widget, count)).object
        assert after.status["counts"]["conditions"] == len(after.status.get("conditions", ())), (
            "the decision used an outdated list"
        )

    async def report(self, n):
        report = StatusReport(self.widget.generation)
        report.condition("Ready", bool(n), "Because")
        report.set(phase="ours")
        after = await status.write_status(self.writer, WIDGET, self.widget, report)
        if not self.is_concurrent:
            ready = [(c["status"], c["reason"]) for c in after.status["conditions"] if c["type"] == "Ready"]
            assert (ready, after.status["phase"]) == ([(str(bool(n)), "Because")], "ours"), (
                "only a part of the report was written"
            )

    async def hold(self, n):
        await finalizers.add(self.writer, WIDGET, self.widget, OURS)

    async def release(self, n):
        await finalizers.remove(self.writer, WIDGET, self.widget, OURS)

    async def default(self, n):
        await defaults.fill(self.writer, WIDGET, self.widget, {"spec": {"note": "default", "size": 9}})

    async def share(self, n):
        await create_only(self.writer, ConfigMap("s", self.bench.namespace, data={"a": "first"}))

    async def take_over(self, n):
        await migrate(self.writer, WIDGET, self.widget, fields=["spec.options.once"], managers=["ours-old"])

    async def discard(self, n):
        """Delete a cached child, with or without the condition that it is unchanged."""
        seen = self.bench.view.peek(WIDGET, CHILDREN[n], self.bench.namespace)
        if seen is not None and controller_of(seen) == self.widget.uid:
            self.applied.pop(CHILDREN[n], None)
            self.allow_deletion(seen, int(seen.resource_version) if n else math.inf)
            await delete(self.writer, WIDGET, seen, unchanged=bool(n))

    async def prune(self, n):
        """Prune all children but one: only own children, and only unchanged ones, may be deleted."""
        cached = [self.bench.view.peek(WIDGET, name, self.bench.namespace) for name in (*CHILDREN, "nephew")]
        children = [child for child in cached if child is not None]
        other = cached[1 - n]
        if other is not None and controller_of(other) == self.widget.uid:
            self.applied.pop(other.name, None)
            self.allow_deletion(other, int(other.resource_version))
        await prune(self.writer, self.widget, WIDGET, children, [(self.bench.namespace, CHILDREN[n])])

    # Invariants

    async def check(self):
        assert await self.read("nephew") == self.nephew, "a child of another owner was changed"
        live = await self.read("w")
        if live.uid != self.widget.uid:
            assert live == self.foreign_objects["w"], "a write for the deleted widget changed the recreated one"
        plan = (live.status.get("plan") or {}).get("id")
        assert self.plan in (None, plan), "a decision was overwritten"
        self.plan = plan
        assert live.finalizers.count(OURS) <= 1
        objects = {name: await self.read(name, ConfigMap if name == "s" else WIDGET) for name in ("w", "s", *CHILDREN)}
        alive = {live.uid: name for name, live in objects.items() if live is not None}
        for uid in self.alive.keys() - alive.keys():
            assert uid in self.deletable, f"nobody asked to delete {self.alive[uid]}"
            assert self.foreign_versions.get(uid, 0) <= self.deletable[uid], (
                f"{self.alive[uid]} was deleted though it had changed"
            )
        self.alive, self.deletable = alive, {}
        for name, live in objects.items():
            if name in self.foreign_objects:
                assert live == self.foreign_objects[name], "a foreign object was changed"
            elif live is not None:
                found, theirs = dict(leaves(live)), self.theirs.get(live.uid, {})
                if (reported := found.pop(("observed", ""))) is not None:
                    assert reported >= theirs.pop(("observed", ""), 0), "observedGeneration decreased"
                    theirs["observed", ""] = found["observed", ""] = reported
                assert {key: found.get(key, "gone") for key in theirs} == theirs
                for where, key in theirs:
                    assert where != "label" or f"f:{key}" in str(owned_by(live, "someone")), "their ownership was lost"

    async def converge(self):
        """Reconcile with an up-to-date cache until a pass sends nothing."""
        if (await self.read("w")).deleting:
            await self.recreate_widget(0)
        for _ in range(4):
            await self.sync()
            for name in CHILDREN:  # What the garbage collector does.
                live = await self.read(name)
                refs = live.metadata.get("ownerReferences", ()) if live is not None else ()
                if any(ref.get("controller") and ref["uid"] != self.widget.uid for ref in refs):
                    await self.delete_child(CHILDREN.index(name))
                    self.bench.view.observe_removal(WIDGET, name, self.bench.namespace, live.uid)
            self.bench.wire.forget()
            for step in (self.hold, self.decide, self.default, self.share, self.take_over):
                await step(0)
            await self.report(1)
            for n in (0, 1):
                with contextlib.suppress(ForeignObject):
                    await self.apply(n)
            foreign_objects = [name for name in CHILDREN if name in self.foreign_objects]
            if quiet := self.bench.wire.writes == ["PATCH"] * len(foreign_objects):
                break
        assert quiet, "the writes do not converge"
        live = await self.read("w")
        assert OURS in live.finalizers
        assert live.is_true("Ready")
        assert live.status["observedGeneration"] == live.generation
        assert "plan" in live.status
        assert live.spec["options"] == {"once": "x"}
        assert "f:once" in str(owned_by(live, "ours", "Apply"))
        for name in CHILDREN:
            if name not in foreign_objects:
                child = await self.read(name)
                assert child.spec["size"] == self.desired
                mine = [item["name"] for item in child.spec["listeners"] if item["name"] != "z"]
                assert mine == LISTENERS[self.desired % 3]

    is_concurrent = False


def leaves(obj):
    """Yield the fields of an object that others may own: (where, name), value."""
    yield from ((("label", name), value) for name, value in obj.labels.items())
    yield from ((("finalizer", name), True) for name in obj.finalizers)
    yield from ((("condition", c["type"]), c.get("message")) for c in obj.status.get("conditions", ()))
    yield from ((("item", item["name"]), item.get("hostname")) for item in obj.spec.get("listeners", ()))
    yield from ((("data", name), value) for name, value in obj.get("data", {}).items())
    yield ("note", ""), obj.spec.get("note")
    yield ("observed", ""), obj.status.get("observedGeneration")


def controller_of(obj):
    return next((ref["uid"] for ref in obj.metadata.get("ownerReferences", ()) if ref.get("controller")), None)


def owned_by(obj, manager, operation="Update"):
    entries = obj.metadata.get("managedFields", ())
    return [e["fieldsV1"] for e in entries if (e["manager"], e["operation"]) == (manager, operation)]


FOREIGN = [
    "label",
    "finalizer",
    "condition",
    "ready",
    "set_controller",
    "observed",
    "note",
    "other_plan",
    "recreate_widget",
    "delete_widget",
]
FOREIGN += ["fields", "drift", "delete_child", "occupy_name", "edit_shared"]
ON_CHILDREN = ["fields", "drift", "delete_child", "occupy_name", "set_controller"]
RIVALS = {  # Our writes, and the foreign writes that can interfere with them.
    "apply": ON_CHILDREN,
    "adopt": ON_CHILDREN,
    "change": ON_CHILDREN,
    "discard": ON_CHILDREN,
    "prune": ON_CHILDREN,
    "decide": ["other_plan", "recreate_widget"],
    "mirror": ["note"],
    "tally": ["condition", "ready"],
    "report": ["condition", "ready", "observed", "recreate_widget"],
    "hold": ["finalizer", "recreate_widget", "delete_widget"],
    "release": ["finalizer", "recreate_widget", "delete_widget"],
    "default": ["note"],
    "share": ["edit_shared"],
    "take_over": ["label", "note"],
}
DISCIPLINES = tuple(sorted(RIVALS))
CUTS = ["", "", "", "answer lost", "cancelled"]

foreign = st.tuples(st.sampled_from(FOREIGN), st.integers(0, 1))
rest = st.tuples(st.sampled_from(["sync", "restart", "unwatch"]), st.just(0))


@st.composite
def steps(draw, disciplines=DISCIPLINES, is_concurrent=2):
    """Draw one or two writes of ours, foreign writes just before them, and a fault."""
    names = draw(st.lists(st.sampled_from(disciplines), min_size=1, max_size=is_concurrent))
    n = draw(st.integers(0, 1))
    rivals = st.tuples(st.sampled_from(RIVALS[names[0]]), st.just(1 - n if names[0] == "prune" else n))
    between = draw(st.lists(st.one_of(rivals, foreign), max_size=2))
    return [(name, n) for name in names], between, draw(st.sampled_from(CUTS))


general = st.lists(st.one_of(foreign, rest, steps(), steps()), min_size=8, max_size=20)
# Histories of one discipline and its rivals find problems that need several steps in a row sooner.
focused = st.sampled_from(DISCIPLINES).flatmap(
    lambda name: st.lists(
        st.one_of(
            steps((name,), 1),
            steps((name,), 1),
            st.tuples(st.sampled_from(RIVALS[name]), st.integers(0, 1)),
            rest,
        ),
        min_size=8,
        max_size=14,
    )
)


async def run(history):
    server = Server(World(), tokens=["t"])
    transport = server.transport()
    bench = Bench(SimpleNamespace(namespace="default"), transport)
    await install(bench.other)
    state = History(bench)
    await state.start()
    for step in history:
        if len(step) == 2:
            counts["foreign writes"] += step[0] in FOREIGN
            await getattr(state, step[0])(step[1])
        else:
            await attempt(state, *step)
        await state.check()
    await state.converge()
    await state.check()
    await transport.close()


async def attempt(state, ours, between, cut):
    """Make our writes concurrently, with foreign writes just before the first one, and a fault in it."""
    wire = state.bench.wire
    wire.forget()
    wire.first = [lambda: others(state, between)] if between else []
    wire.lost, wire.cancelled = int(cut == "answer lost"), int(cut == "cancelled")
    state.is_concurrent = len(ours) > 1
    results = await asyncio.gather(*(getattr(state, name)(n) for name, n in ours), return_exceptions=True)
    counts["foreign writes just before ours"] += len(between) if not wire.first else 0
    counts["requests"] += len(wire.sent)
    wire.first, wire.lost, wire.cancelled = [], 0, 0
    counts["own writes"] += len(ours)
    counts["concurrent own writes"] += len(ours) if len(ours) > 1 else 0
    for result in results:
        if isinstance(result, BaseException):
            counts[type(result).__name__] += 1
            if not isinstance(result, WriteError | UnknownOutcome | asyncio.CancelledError):
                raise result


async def others(state, between):
    for name, n in between:
        await getattr(state, name)(n)


EXAMPLES = int(os.environ.get("FAIRLEAD_HISTORIES", "100"))


@settings(max_examples=EXAMPLES // 2)
@given(focused)
@example([([("apply", 0)], [], ""), ("delete_child", 0), ([("change", 0)], [], "")])
@example([("occupy_name", 0), ([("apply", 0)], [], ""), ([("hold", 0)], [("recreate_widget", 0)], "")])
@example([([("hold", 0)], [("delete_widget", 0)], ""), ([("report", 0)], [("observed", 0)], "")])
@example([([("report", 0)], [], ""), ([("report", 1)], [("ready", 1)], "")])
@example([("occupy_name", 0), ("sync", 0), ([("adopt", 0)], [("set_controller", 0)], "")])
@example([("occupy_name", 0), ([("adopt", 0)], [("set_controller", 0)], ""), ("sync", 0), ([("discard", 0)], [], "")])
@example([([("adopt", 1)], [], ""), ("occupy_name", 1), ([("adopt", 1)], [], "")])
@example(
    [
        ([("apply", 1)], [], ""),
        ("fields", 1),
        ("sync", 0),
        ([("discard", 1)], [], "cancelled"),
        ([("apply", 1)], [], ""),
    ]
)
@example([("occupy_name", 0), ("set_controller", 0), ([("adopt", 0)], [], "")])
@example([("condition", 0), ("sync", 0), ([("tally", 0)], [("condition", 1)], "")])
def test_histories_of_one_discipline_keep_the_invariants(history):
    counts["histories"] += 1
    asyncio.run(run(history))
    counts["histories of one discipline"] += 1


@settings(max_examples=EXAMPLES)
@given(general)
def test_random_histories_keep_the_invariants_and_converge(history):
    counts["histories"] += 1
    asyncio.run(run(history))


def test_histories_encounter_every_kind_of_rejection():
    """Histories without any rejection would prove nothing. Run with -s to see the counts."""
    if not counts["histories of one discipline"]:  # Another process ran them.
        test_histories_of_one_discipline_keep_the_invariants()
    print("\n" + "\n".join(f"{count:6} {what}" for what, count in counts.items()))
    assert {
        what.__name__
        for what in (
            ObjectDeleting,
            ForeignObject,
            ObjectDeleted,
            ObjectReplaced,
            StatusSuperseded,
            asyncio.CancelledError,
        )
    } <= counts.keys()
