"""Tests of random own and foreign writes, with a stale cache, concurrent writes and lost responses.

After each step: no foreign field is changed or lost, no decision is overwritten, no deleted object is recreated, and no
foreign object is changed or deleted. At the end everything converges, and then nothing is sent. The tests count the
rejections and print them with `-s`; every kind must occur. `make histories N=5000 SEED=7` plays other histories.
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
from workbench import WIDGET, WriteTestEnvironment, install

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


class WriteHistory:
    """One widget, its children, a shared object, the foreign fields in them, and the cache of our controller."""

    def __init__(self, env):
        self.env, self.writer = env, env.cached_writer
        self.desired = 0
        self.foreign_fields = {}  # Fields that must stay while the object exists: uid -> {(where, name): value}.
        self.foreign_versions = {}  # uid -> version of the last foreign write to it.
        self.alive = {}  # uid -> name, at the last check.
        self.deletable_versions = {}  # uid -> the newest version that someone asked to be deleted in this step
        self.foreign_objects = {}  # name -> foreign object, which we must not change.
        self.plan = None
        self.widget = None  # As this controller has cached it.
        self.applied = {}  # name -> uid of the child that the last apply returned.

    async def start(self):
        await self.create_widget("w", spec={"size": 1, "options": {"once": "x"}}, manager="ours-old")
        await self.sync()
        self.other_owner = await self.create_widget("sister")
        self.child_of_other_owner = await apply(
            self.env.cached_writer, WIDGET("nephew", spec={"size": 1}), owner=self.other_owner
        )

    async def create_widget(self, name, manager="maker", **fields):
        return await self.env.foreign_client.create(WIDGET(name, self.env.namespace, **fields), field_manager=manager)

    async def read(self, name, kind=WIDGET):
        with contextlib.suppress(NotFound):
            return await self.env.foreign_client.get(kind, name, self.env.namespace)
        return None

    # Foreign writes. `n` gives two variants of each.

    async def merge_patch(self, live, patch, name, *foreign_leaves, subresource=None):
        """Send a foreign patch to an object, and record the foreign fields that must stay."""
        after = await self.env.merge_patch(live, patch, subresource)
        self.foreign_versions[after.uid] = int(after.resource_version)
        self.foreign_fields.setdefault(after.uid, {}).update(foreign_leaves)
        if name in self.foreign_objects:
            self.foreign_objects[name] = after

    async def label(self, variant):
        value = str(sum(self.foreign_versions.values()))
        live = await self.read("w")
        await self.merge_patch(
            live, {"metadata": {"labels": {f"f{variant}": value}}}, "w", (("label", f"f{variant}"), value)
        )

    async def finalizer(self, variant):
        live, name = await self.read("w"), f"f.x/{variant}"
        if name not in live.finalizers and not live.deleting:
            patch = {"metadata": {"finalizers": [name, *live.finalizers]}}
            await self.merge_patch(live, patch, "w", (("finalizer", name), True))

    async def delete_widget(self, variant):
        """Delete the widget while a foreign finalizer keeps it."""
        await self.finalizer(variant)
        await self.env.foreign_client.delete(WIDGET, "w", self.env.namespace)
        live = await self.read("w")
        self.foreign_versions[live.uid] = int(live.resource_version)
        if "w" in self.foreign_objects:
            self.foreign_objects["w"] = live

    async def condition(self, variant):
        """Write a foreign condition, at the start or at the end of the list."""
        live, value = await self.read("w"), str(sum(self.foreign_versions.values()))
        write_as_others = [
            condition for condition in live.status.get("conditions", ()) if condition["type"] != f"F{variant}"
        ]
        theirs = [{"type": f"F{variant}", "status": "True", "message": value}]
        patch = {"status": {"conditions": [*write_as_others, *theirs] if variant else [*theirs, *write_as_others]}}
        await self.merge_patch(live, patch, "w", (("condition", f"F{variant}"), value), subresource="status")

    async def ready(self, variant):
        """Overwrite our condition or our field with a wrong value, as another writer."""
        live = await self.read("w")
        write_as_others = [condition for condition in live.status.get("conditions", ()) if condition["type"] != "Ready"]
        theirs = {"conditions": [*write_as_others, {"type": "Ready", "status": "Unknown", "reason": "Theirs"}]}
        await self.merge_patch(live, {"status": {"phase": "theirs"} if variant else theirs}, "w", subresource="status")

    async def set_controller(self, variant):
        """Set a controller of a foreign object, so that the object may not be adopted any more."""
        if CHILDREN[variant] in self.foreign_objects:
            owner = {"apiVersion": WIDGET.api_version, "kind": "Widget", "name": "sister", "uid": self.other_owner.uid}
            references = {"metadata": {"ownerReferences": [{**owner, "controller": True}]}}
            await self.merge_patch(self.foreign_objects[CHILDREN[variant]], references, CHILDREN[variant])

    async def observed(self, variant):
        """Report a newer generation, like a newer release of this controller."""
        live = await self.read("w")
        await self.merge_patch(live, {"spec": {"size": live.spec["size"] + 1}}, "w")
        patch = {"status": {"observedGeneration": live.generation + 1}}
        await self.merge_patch(live, patch, "w", (("observed", ""), live.generation + 1), subresource="status")

    async def note(self, variant):
        await self.merge_patch(
            await self.read("w"), {"spec": {"note": str(variant)}}, "w", (("note", ""), str(variant))
        )

    async def other_plan(self, variant):
        live = await self.read("w")
        if "plan" not in live.status:
            patch = {"status": {"plan": {"id": f"theirs-{variant}"}}}
            await self.merge_patch(live, patch, "w", subresource="status")

    async def recreate_widget(self, variant):
        """Delete the widget and its children, and create another widget with the same name."""
        live = await self.read("w")
        await self.env.merge_patch(live, {"metadata": {"finalizers": None}})
        if not live.deleting:
            await self.env.foreign_client.delete(WIDGET, "w", self.env.namespace)
        self.allow_deletion(live)
        for name in CHILDREN:
            if name not in self.foreign_objects:
                await self.delete_child(CHILDREN.index(name))
        self.plan = None
        self.foreign_objects["w"] = await self.create_widget(
            "w", spec={"size": 1, "options": {"once": "x"}}, manager="ours-old"
        )

    async def fields(self, variant):
        """Add a foreign label, a foreign list item, and a foreign field in one of our items."""
        name = CHILDREN[variant]
        if (live := await self.read(name)) is not None:
            write_as_others = [item for item in live.spec.get("listeners", ()) if item["name"] != "z"]
            items = [{**item, "hostname": "theirs"} if item["name"] == "a" else item for item in write_as_others]
            patch = {"metadata": {"labels": {"f": str(variant)}}, "spec": {"listeners": [{"name": "z"}, *items]}}
            mine = [(("item", "z"), None)]
            mine += [(("item", "a"), "theirs")] if any(item["name"] == "a" for item in items) else []
            await self.merge_patch(live, patch, name, (("label", "f"), str(variant)), *mine)

    async def drift(self, variant):
        live = await self.read(CHILDREN[variant])
        if live is not None and CHILDREN[variant] not in self.foreign_objects:
            await self.merge_patch(live, {"spec": {"size": 99}}, CHILDREN[variant])

    async def delete_child(self, variant):
        if (live := await self.read(CHILDREN[variant])) is not None:
            await self.env.foreign_client.delete(WIDGET, CHILDREN[variant], self.env.namespace)
            self.allow_deletion(live)
        self.foreign_objects.pop(CHILDREN[variant], None)

    async def occupy_name(self, variant):
        """Create a foreign object with the name of a child. Variant 1 has our widget as an owner."""
        await self.delete_child(variant)
        foreign_object = WIDGET(CHILDREN[variant], self.env.namespace, spec={"size": 7})
        if variant:
            live = await self.read("w")
            ref = {"apiVersion": WIDGET.api_version, "kind": "Widget", "name": "w", "uid": live.uid}
            foreign_object["metadata"]["ownerReferences"] = [ref]
        self.foreign_objects[CHILDREN[variant]] = await self.env.foreign_client.create(
            foreign_object, field_manager="squatter"
        )

    async def edit_shared(self, variant):
        if (live := await self.read("s", ConfigMap)) is not None:
            await self.merge_patch(live, {"data": {"a": "edited"}}, "s", (("data", "a"), "edited"))

    def allow_deletion(self, obj, version=math.inf):
        self.deletable_versions[obj.uid] = max(version, self.deletable_versions.get(obj.uid, 0))

    # Our writes, based on the cache.

    async def sync(self, variant=0):
        """Update the cache from the server."""
        self.writer = dataclasses.replace(self.writer, cache=self.env.cache)
        view = self.env.cache
        self.widget = view.put(WIDGET, await self.read("w"))
        self.foreign_objects.pop("w", None)
        for kind, name in ((ConfigMap, "s"), *((WIDGET, name) for name in CHILDREN)):
            view.objects.pop((kind.kind, self.env.namespace, name), None)
            if (live := await self.read(name, kind)) is not None:
                view.put(kind, live)

    async def restart(self, variant):
        self.writer = dataclasses.replace(self.writer, last_writes={})
        self.applied.clear()

    async def unwatch(self, variant):
        """Work without a cache until the next `sync`."""
        self.writer = dataclasses.replace(self.writer, cache=NoCache())

    def payload(self, name):
        spec = {"size": self.desired, "listeners": [{"name": name} for name in LISTENERS[self.desired % 3]]}
        return WIDGET(name, spec=spec)

    async def apply(self, variant):
        name, watched = CHILDREN[variant], self.writer.cache is self.env.cache
        cached_child = self.env.cache.peek(WIDGET, name, self.env.namespace)
        own_writes = cached_child is not None and controller_of(cached_child) == self.widget.uid
        expected_uid = (cached_child.uid if own_writes else None) if watched else self.applied.get(name)
        try:
            applied = await apply(self.writer, self.payload(name), owner=self.widget)
        except ObjectDeleted:  # Raised once per deletion.
            self.applied.pop(name, None)
            raise
        self.applied[name] = applied.uid
        if expected_uid is not None and not self.is_concurrent:
            assert applied.uid == expected_uid, "an object that was seen and deleted was recreated"

    async def adopt(self, variant):
        """Adopt a foreign object and check that its fields stay. An object with a controller must not be adopted."""
        name = CHILDREN[variant]
        try:
            applied = await apply(self.writer, self.payload(name), owner=self.widget, adopt=True)
            self.applied[name] = applied.uid
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

    async def change(self, variant):
        self.desired += 1
        await self.apply(variant)

    async def decide(self, variant):
        def plan_for(draft):
            if draft.status.get("plan"):
                return draft.status["plan"]["id"]
            draft.status["plan"] = {"id": f"ours-{variant}"}
            return f"ours-{variant}"

        decided = await decide(self.writer, WIDGET, self.widget, plan_for)
        assert decided.result == decided.object.status["plan"]["id"]

    async def mirror(self, variant):
        """Copy the note to the status, and check that both are equal after the write."""

        def copy_note(draft):
            draft.status["phase"] = draft.spec.get("note") or "none"

        after = (await decide(self.writer, WIDGET, self.widget, copy_note)).object
        assert after.status["phase"] == after.spec.get("note", "none"), "the decision used an outdated note"

    async def tally(self, variant):
        """Write the number of conditions to the status."""

        def count(draft):
            draft.status["counts"] = {"conditions": len(draft.status.get("conditions") or ())}

        after = (await decide(self.writer, WIDGET, self.widget, count)).object
        assert after.status["counts"]["conditions"] == len(after.status.get("conditions", ())), (
            "the decision used an outdated list"
        )

    async def report(self, variant):
        report = StatusReport(self.widget.generation)
        report.condition("Ready", bool(variant), "Because")
        report.set(phase="ours")
        after = await status.write_status(self.writer, WIDGET, self.widget, report)
        if not self.is_concurrent:
            ready_conditions = [
                (condition["status"], condition["reason"])
                for condition in after.status["conditions"]
                if condition["type"] == "Ready"
            ]
            assert (ready_conditions, after.status["phase"]) == ([(str(bool(variant)), "Because")], "ours"), (
                "only a part of the report was written"
            )

    async def hold(self, variant):
        await finalizers.add(self.writer, WIDGET, self.widget, OURS)

    async def release(self, variant):
        await finalizers.remove(self.writer, WIDGET, self.widget, OURS)

    async def default(self, variant):
        await defaults.fill(self.writer, WIDGET, self.widget, {"spec": {"note": "default", "size": 9}})

    async def share(self, variant):
        await create_only(self.writer, ConfigMap("s", self.env.namespace, data={"a": "first"}))

    async def take_over(self, variant):
        await migrate(self.writer, WIDGET, self.widget, fields=["spec.options.once"], managers=["ours-old"])

    async def discard(self, variant):
        """Delete a cached child, with or without the condition that it is unchanged."""
        expected_uid = self.env.cache.peek(WIDGET, CHILDREN[variant], self.env.namespace)
        if expected_uid is not None and controller_of(expected_uid) == self.widget.uid:
            self.applied.pop(CHILDREN[variant], None)
            self.allow_deletion(expected_uid, int(expected_uid.resource_version) if variant else math.inf)
            await delete(self.writer, WIDGET, expected_uid, unchanged=bool(variant))

    async def prune(self, variant):
        """Prune all children but one, and check that only own, unchanged children are deleted."""
        cached = [self.env.cache.peek(WIDGET, name, self.env.namespace) for name in (*CHILDREN, "nephew")]
        children = [child for child in cached if child is not None]
        other = cached[1 - variant]
        if other is not None and controller_of(other) == self.widget.uid:
            self.applied.pop(other.name, None)
            self.allow_deletion(other, int(other.resource_version))
        await prune(self.writer, self.widget, WIDGET, children, [(self.env.namespace, CHILDREN[variant])])

    # Invariants

    async def check(self):
        assert await self.read("nephew") == self.child_of_other_owner, "a child of another owner was changed"
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
            assert uid in self.deletable_versions, f"nobody asked to delete {self.alive[uid]}"
            assert self.foreign_versions.get(uid, 0) <= self.deletable_versions[uid], (
                f"{self.alive[uid]} was deleted though it had changed"
            )
        self.alive, self.deletable_versions = alive, {}
        for name, live in objects.items():
            if name in self.foreign_objects:
                assert live == self.foreign_objects[name], "a foreign object was changed"
            elif live is not None:
                present_leaves, theirs = dict(foreign_leaves(live)), self.foreign_fields.get(live.uid, {})
                if (reported := present_leaves.pop(("observed", ""))) is not None:
                    assert reported >= theirs.pop(("observed", ""), 0), "observedGeneration decreased"
                    theirs["observed", ""] = present_leaves["observed", ""] = reported
                assert {key: present_leaves.get(key, "gone") for key in theirs} == theirs
                for leaf_path, key in theirs:
                    assert leaf_path != "label" or f"f:{key}" in str(owned_by(live, "someone")), (
                        "their ownership was lost"
                    )

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
                    self.env.cache.observe_removal(WIDGET, name, self.env.namespace, live.uid)
            self.env.faulty_transport.forget_requests()
            for step in (self.hold, self.decide, self.default, self.share, self.take_over):
                await step(0)
            await self.report(1)
            for variant in (0, 1):
                with contextlib.suppress(ForeignObject):
                    await self.apply(variant)
            foreign_objects = [name for name in CHILDREN if name in self.foreign_objects]
            if is_quiet := self.env.faulty_transport.writes == ["PATCH"] * len(foreign_objects):
                break
        assert is_quiet, "the writes do not converge"
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


def foreign_leaves(obj):
    """Yield the fields of an object that others may own, as ((where, name), value)."""
    yield from ((("label", name), value) for name, value in obj.labels.items())
    yield from ((("finalizer", name), True) for name in obj.finalizers)
    yield from (
        (("condition", condition["type"]), condition.get("message")) for condition in obj.status.get("conditions", ())
    )
    yield from ((("item", item["name"]), item.get("hostname")) for item in obj.spec.get("listeners", ()))
    yield from ((("data", name), value) for name, value in obj.get("data", {}).items())
    yield ("note", ""), obj.spec.get("note")
    yield ("observed", ""), obj.status.get("observedGeneration")


def controller_of(obj):
    return next((ref["uid"] for ref in obj.metadata.get("ownerReferences", ()) if ref.get("controller")), None)


def owned_by(obj, manager, operation="Update"):
    entries = obj.metadata.get("managedFields", ())
    return [entry["fieldsV1"] for entry in entries if (entry["manager"], entry["operation"]) == (manager, operation)]


FOREIGN_WRITES = [
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
FOREIGN_WRITES += ["fields", "drift", "delete_child", "occupy_name", "edit_shared"]
ON_CHILDREN = ["fields", "drift", "delete_child", "occupy_name", "set_controller"]
RIVAL_WRITES = {  # Our writes, and the foreign writes that can interfere with them.
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
DISCIPLINES = tuple(sorted(RIVAL_WRITES))
FAULTS = ["", "", "", "answer lost", "cancelled"]

foreign = st.tuples(st.sampled_from(FOREIGN_WRITES), st.integers(0, 1))
cache_step = st.tuples(st.sampled_from(["sync", "restart", "unwatch"]), st.just(0))


@st.composite
def steps(draw, disciplines=DISCIPLINES, is_concurrent=2):
    """Draw one or two own writes, foreign writes just before them, and a fault."""
    names = draw(st.lists(st.sampled_from(disciplines), min_size=1, max_size=is_concurrent))
    variant = draw(st.integers(0, 1))
    rivals = st.tuples(
        st.sampled_from(RIVAL_WRITES[names[0]]), st.just(1 - variant if names[0] == "prune" else variant)
    )
    foreign_writes = draw(st.lists(st.one_of(rivals, foreign), max_size=2))
    return [(name, variant) for name in names], foreign_writes, draw(st.sampled_from(FAULTS))


random_histories = st.lists(st.one_of(foreign, cache_step, steps(), steps()), min_size=8, max_size=20)
# Histories of one discipline and its rivals find problems that need several steps in a row sooner.
histories_of_one_discipline = st.sampled_from(DISCIPLINES).flatmap(
    lambda name: st.lists(
        st.one_of(
            steps((name,), 1),
            steps((name,), 1),
            st.tuples(st.sampled_from(RIVAL_WRITES[name]), st.integers(0, 1)),
            cache_step,
        ),
        min_size=8,
        max_size=14,
    )
)


async def run(history):
    server = Server(World(), tokens=["t"])
    transport = server.transport()
    env = WriteTestEnvironment(SimpleNamespace(namespace="default"), transport)
    await install(env.foreign_client)
    state = WriteHistory(env)
    await state.start()
    for step in history:
        if len(step) == 2:
            counts["foreign writes"] += step[0] in FOREIGN_WRITES
            await getattr(state, step[0])(step[1])
        else:
            await write_concurrently(state, *step)
        await state.check()
    await state.converge()
    await state.check()
    await transport.close()


async def write_concurrently(state, own_writes, foreign_writes, fault):
    """Send our writes concurrently, with foreign writes just before the first one, and a fault."""
    transport = state.env.faulty_transport
    transport.forget_requests()
    transport.before_writes = [lambda: write_as_others(state, foreign_writes)] if foreign_writes else []
    transport.lost_responses, transport.cancelled_writes = int(fault == "answer lost"), int(fault == "cancelled")
    state.is_concurrent = len(own_writes) > 1
    results = await asyncio.gather(
        *(getattr(state, name)(variant) for name, variant in own_writes), return_exceptions=True
    )
    counts["foreign writes just before ours"] += len(foreign_writes) if not transport.before_writes else 0
    counts["requests"] += len(transport.sent_requests)
    transport.before_writes, transport.lost_responses, transport.cancelled_writes = [], 0, 0
    counts["own writes"] += len(own_writes)
    counts["concurrent own writes"] += len(own_writes) if len(own_writes) > 1 else 0
    for result in results:
        if isinstance(result, BaseException):
            counts[type(result).__name__] += 1
            if not isinstance(result, WriteError | UnknownOutcome | asyncio.CancelledError):
                raise result


async def write_as_others(state, foreign_writes):
    for name, variant in foreign_writes:
        await getattr(state, name)(variant)


EXAMPLES = int(os.environ.get("FAIRLEAD_HISTORIES", "100"))


@settings(max_examples=EXAMPLES // 2)
@given(histories_of_one_discipline)
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
@given(random_histories)
def test_random_histories_keep_the_invariants_and_converge(history):
    counts["histories"] += 1
    asyncio.run(run(history))


def test_histories_encounter_every_kind_of_rejection():
    """Tests that the histories caused every kind of rejection. Run with -s to print the counts."""
    if not counts["histories of one discipline"]:  # Another process ran them.
        test_histories_of_one_discipline_keep_the_invariants()
    print("\n" + "\n".join(f"{count:6} {rejection}" for rejection, count in counts.items()))
    assert {
        rejection.__name__
        for rejection in (
            ObjectDeleting,
            ForeignObject,
            ObjectDeleted,
            ObjectReplaced,
            StatusSuperseded,
            asyncio.CancelledError,
        )
    } <= counts.keys()
