"""Odd input: keys, numbers, nulls and shapes that someone may put into an object, and what cannot be written at all."""

import asyncio
import datetime
from types import SimpleNamespace

import pytest
from workbench import CRD, WIDGET, Bench, install

from fairlead.api.builtin import ConfigMap, Namespace, Secret
from fairlead.api.errors import UnknownOutcome
from fairlead.api.kinds import kind
from fairlead.api.objects import Object
from fairlead.api.world import World
from fairlead.client.client import PatchType
from fairlead.runtime.operator import Operator
from fairlead.server.app import Server
from fairlead.writes import (
    StatusReport,
    WriteError,
    Writer,
    apply,
    decide,
    defaults,
    delete,
    finalizers,
    migrate,
    status,
)

KEYS = ["~", "/", "", "a~1b", "~0", "ü/~\u2028", "0", "-", "\U0001f600", "a b", '"q\\', "\u0001", "%2F", "a.b/c", "<&>"]


async def test_any_key_can_be_read_set_and_removed_in_one_request_each(bench):
    widget = await bench.widget(spec={"free": dict.fromkeys(KEYS, "old")})

    def read(draft):
        draft.status["phase"] = " ".join(f"{key} {draft.spec['free'][key]}" for key in KEYS)

    def replace(draft):
        draft.spec["free"].update({key: {key: {key: "deep"}} for key in KEYS})

    def reach(draft):
        for key in KEYS:
            draft.spec["free"][key][key][key] += "er"
            draft.spec["free"][key][f"new{key}"] = key

    def remove(draft):
        for key in KEYS:
            del draft.spec["free"][key][key]

    for change in (read, replace, reach, remove):
        widget = (await decide(bench.writer, WIDGET, widget, change)).object
    assert widget.spec["free"] == {key: {f"new{key}": key} for key in KEYS}
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"] * 4


NUMBERS = [2**53 + 1, 2**63 - 1, -(2**63), 0, 1.5, 1e-7, 1e21, 0.1 + 0.2, 1e300, 5e-324, 1e-6, 123456789.123456789]
LONG = [2**63, 2**64, 2**70, 10**30, -(2**63) - 1]


async def test_numbers_are_guarded_and_a_decision_that_stands_is_not_sent_again(bench):
    widget = await bench.widget(spec={"free": {"numbers": NUMBERS}})

    def decision(draft):
        draft.spec["free"]["copies"] = [*draft.spec["free"]["numbers"], {"long": LONG}]

    widget = (await decide(bench.writer, WIDGET, widget, decision)).object
    assert widget.spec["free"]["copies"][:-1] == NUMBERS
    assert not (await decide(bench.writer, WIDGET, widget, decision)).changed
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"]


async def test_a_null_in_a_list_can_be_read_with_its_list(bench):
    """A real server gives up a request that tests a list with a null in it, and closes the connection."""
    items = [None, 1, {"x": None}, []]
    widget = await bench.widget(spec={"free": {"l": items, "m": {"l": [items]}}})

    def whole(draft):
        draft.status["phase"] = str(draft.spec["free"])

    def append(draft):
        if None in draft.spec["free"]["l"]:
            draft.spec["free"]["l"].append(None)

    def reach(draft):
        draft.spec["free"]["l"][2]["y"] = draft.spec["free"]["l"][1]
        draft.spec["free"]["l"][0] = "was null"

    for change in (whole, append, reach):
        widget = (await decide(bench.writer, WIDGET, widget, change)).object
    assert widget.spec["free"]["l"] == ["was null", 1, {"x": None, "y": 1}, [], None]
    assert [method for method, _, _ in bench.wire.sent] == ["PATCH"] * 3


async def test_an_answer_that_is_lost_again_and_again_is_said_to_be(bench):
    """Each time the server refused, for all that is known: this is no crowd on what was read."""
    widget = await bench.widget(status={"counts": {"n": 0}})

    def increment(draft):
        draft.status["counts"]["n"] += 1

    bench.wire.lost = 100
    with pytest.raises(UnknownOutcome):
        await decide(bench.writer, WIDGET, widget, increment)
    assert bench.wire.writes == ["PATCH", "PATCH"]


LOST = {
    "apply": lambda bench, obj: apply(bench.writer, ConfigMap("c", bench.namespace, data={"a": "1"}), owner=obj),
    "migrate": lambda bench, obj: migrate(bench.writer, WIDGET, obj, fields=["spec"], managers=["maker"]),
}


@pytest.mark.parametrize("write", LOST.values(), ids=LOST.keys())
async def test_a_write_that_never_gets_there_is_said_to_be_of_unknown_outcome(bench, monkeypatch, write):
    """Though each look works: nobody is in the way, and no look will help."""
    widget, sent = await bench.widget(spec={"size": 1}), []

    async def lost(*args, **options):
        sent.append(args)
        raise UnknownOutcome("the answer was lost")

    monkeypatch.setattr(bench.client, "apply", lost)
    monkeypatch.setattr(bench.client, "patch", lost)
    with pytest.raises(UnknownOutcome):
        await write(bench, widget)
    assert len(sent) == 2


ONE_TEXT = {
    "fields": lambda bench, obj: migrate(bench.writer, WIDGET, obj, fields="spec", managers=["maker"]),
    "managers": lambda bench, obj: migrate(bench.writer, WIDGET, obj, fields=["spec"], managers="maker-of-all"),
    "only": lambda bench, obj: decide(bench.writer, WIDGET, obj, lambda draft: draft.spec.clear(), only="spec"),
}


@pytest.mark.parametrize("option", ONE_TEXT)
async def test_one_text_is_not_taken_for_a_list_of_names(bench, option):
    """`in` a text is every part of it: the entries of `maker` are not those of `maker-of-all`."""
    widget = await bench.widget(spec={"size": 1})
    with pytest.raises(ValueError, match=rf"{option}=.* is one text where a list is wanted: write {option}=\["):
        await ONE_TEXT[option](bench, widget)
    assert bench.wire.sent == []


def test_nor_is_the_name_of_a_former_field_manager():
    for make in (lambda: Operator("o", formerly="old"), lambda: Writer(None, World(), "o", former_managers="old")):
        with pytest.raises(ValueError, match=r"former\w+='old' is one text"):
            make()


BY_HAND = {
    "delete": lambda bench, obj: delete(bench.writer, WIDGET, obj),
    "decide": lambda bench, obj: decide(bench.writer, WIDGET, obj, lambda draft: draft.status.update(phase="x")),
    "report": lambda bench, obj: status.write_status(bench.writer, WIDGET, obj, StatusReport(1)),
    "finalizer": lambda bench, obj: finalizers.add(bench.writer, WIDGET, obj, "a.b/c"),
    "migrate": lambda bench, obj: migrate(bench.writer, WIDGET, obj, fields=["spec"], managers=["maker"]),
    "own": lambda bench, obj: apply(bench.writer, ConfigMap("c", bench.namespace), owner=obj),
}


@pytest.mark.parametrize("name", [name for name in BY_HAND if name != "own"])
async def test_an_object_of_another_kind_is_not_taken_for_one_of_its_name_that_is_gone(bench, name):
    other = await bench.config_map("w")
    with pytest.raises(ValueError, match=f"Widget {bench.namespace}/w was expected, but the object is a ConfigMap"):
        await BY_HAND[name](bench, other)
    assert bench.wire.sent == []


async def test_an_owner_of_which_only_metadata_was_read_is_not_named_by_a_kind_that_nobody_serves(bench):
    await bench.widget("owner")
    [owner] = (await bench.other.list(WIDGET, bench.namespace, metadata_only=True)).items
    with pytest.raises(ValueError, match="only the metadata of the owner owner was read: read the whole object"):
        await BY_HAND["own"](bench, owner)
    assert bench.wire.sent == []


@pytest.mark.parametrize("write", BY_HAND.values(), ids=BY_HAND.keys())
async def test_an_object_built_by_hand_is_not_taken_for_the_one_of_its_name(bench, write):
    widget = await bench.widget(spec={"size": 1})
    with pytest.raises(ValueError, match="has no uid: pass the object as the server returned it"):
        await write(bench, Object(WIDGET("w", bench.namespace, spec={"size": 1})))
    assert bench.wire.sent == []
    assert await bench.live(widget) == widget


SERVERS = {
    "/metadata/name": lambda draft: draft.metadata.update(name="other"),
    "/metadata/uid": lambda draft: draft.metadata.update(uid="other"),
    "/metadata/resourceVersion": lambda draft: draft.metadata.update(resourceVersion="1"),
    "/metadata/managedFields": lambda draft: draft.metadata.update(managedFields=[]),
    "/metadata/generation": lambda draft: draft.metadata.update(generation=9),
    "/metadata/deletionTimestamp": lambda draft: draft.metadata.update(deletionTimestamp="2026-01-01T00:00:00Z"),
    "/metadata": lambda draft: draft.pop("metadata"),
    "/kind": lambda draft: draft.update(kind="Other"),
    "/apiVersion": lambda draft: draft.clear(),
}


@pytest.mark.parametrize(("path", "change"), SERVERS.items(), ids=SERVERS.keys())
async def test_what_is_the_servers_is_left_alone(bench, path, change):
    """Emptied managedFields would take everyone's ownership away; another version could never land."""
    widget = await bench.widget(spec={"size": 1})
    with pytest.raises(WriteError, match=f"changes {path}, which the server manages"):
        await decide(bench.writer, WIDGET, widget, change)
    assert bench.wire.sent == []


async def test_string_data_is_not_written_over_what_others_put_into_data(bench):
    """It is not there to be tested, and a server merges it into data unseen."""
    secret = await bench.other.create(Secret("s", bench.namespace, data={"a": "b2xk"}))
    theirs = await bench.merge(secret, {"data": {"a": "dGhlaXJz"}})
    with pytest.raises(WriteError, match=r"changes stringData.*: change data instead, encoded in base64"):
        await decide(bench.writer, Secret, secret, lambda draft: draft.update(stringData={"a": "ours"}))
    assert await bench.live(secret) == theirs


HOLDS_ITSELF = {}
HOLDS_ITSELF["again"] = [HOLDS_ITSELF]
UNSAYABLE = [
    ({80: "x"}, "the key 80 of .* must be text.*: quote it"),
    ({"a": {None: 1}}, "the key None of .* must be text"),
    ({"a": "\ud800"}, "contains a lone surrogate.*: decode it with"),
    ({"\udfff": 1}, "the key .* contains a lone surrogate"),
    (HOLDS_ITSELF, "contains itself, or is nested without end: use a copy"),
    (float("nan"), "which JSON cannot represent: use a finite number"),
    (float("inf"), "which JSON cannot represent: use a finite number"),
    ([float("-inf")], "which JSON cannot represent: use a finite number"),
    (object(), "of type object, which JSON cannot represent"),
    ({"a": [{1, "x"}]}, "of type set, which JSON cannot represent"),
]


@pytest.mark.parametrize(("value", "said"), UNSAYABLE, ids=[said.partition(",")[0] for _, said in UNSAYABLE])
async def test_what_json_cannot_say_is_said_before_anything_is_sent(bench, value, said):
    widget = await bench.widget()
    with pytest.raises(ValueError, match=said):
        await decide(bench.writer, WIDGET, widget, lambda draft: draft.spec.update(free={"n": value}))
    with pytest.raises(ValueError, match=said):
        await defaults.fill(bench.writer, WIDGET, widget, {"spec": {"free": {"n": value}}})
    with pytest.raises(ValueError, match=rf"Widget {bench.namespace}/c.*{said}") as told:
        await apply(bench.writer, WIDGET("c", bench.namespace, spec={"free": {"n": value}}))
    assert "spec.free.n" in str(told.value) or value is HOLDS_ITSELF
    with pytest.raises(ValueError, match=said) as told:
        StatusReport(1).set(phase=value)
    assert "status.phase" in str(told.value)
    assert bench.wire.sent == []


async def test_a_part_of_the_object_is_not_put_into_itself(bench):
    widget = await bench.widget(status={"phase": "Old"})
    with pytest.raises(ValueError, match=r"the result of the decision contains itself.*: use a copy"):
        await decide(bench.writer, WIDGET, widget, lambda draft: draft.status.update(plan=draft.status))
    kept = {"phase": "Old", "plan": {"id": "Old"}}
    copied = await decide(bench.writer, WIDGET, widget, lambda d: d.status.update(plan={"id": d.status["phase"]}))
    assert copied.object.status == kept


@pytest.mark.parametrize("said", [("A", True, None), (None, True, "R"), ("A", True, "R", ValueError("x"))], ids=str)
def test_what_is_no_text_in_a_condition_is_said_where_it_is_reported(said):
    with pytest.raises(ValueError, match=r"of condition .* must be text.*: quote it, or use str\(\)"):
        StatusReport(1).condition(*said)


async def test_times_bytes_and_tuples_are_written_as_json_has_them(bench):
    widget = await bench.widget()
    value = {"t": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "b": b"x", "l": (1, 2)}
    for _ in range(2):
        widget = (await decide(bench.writer, WIDGET, widget, lambda draft: draft.spec.update(free=value))).object
    assert widget.spec["free"] == {"t": "2026-01-01T00:00:00Z", "b": "eA==", "l": [1, 2]}
    assert bench.wire.writes == ["PATCH"]


async def test_a_set_is_written_in_order_so_that_equal_ones_are_equal(bench):
    widget = await bench.widget()
    for value in ({8, 0, 16}, {16, 8, 0}):
        spec = {"free": {"s": value}}
        child = await apply(bench.cached, WIDGET("c", bench.namespace, spec=spec), owner=widget)
        widget = (await decide(bench.writer, WIDGET, widget, lambda draft, spec=spec: draft.spec.update(spec))).object
    assert (child.spec, widget.spec) == ({"free": {"s": [0, 8, 16]}},) * 2
    assert bench.wire.writes == ["PATCH", "PATCH"]


async def test_a_child_that_nothing_would_show_to_be_ours_is_refused_at_once(bench):
    """Without a field there is no Apply entry: after a restart the child would be a stranger's to who made it."""
    owner = await bench.widget("owner")
    for payload in (Namespace(f"{bench.namespace}-x"), ConfigMap("c", "default", labels=None)):
        with pytest.raises(ValueError, match="give it a label"):
            await apply(bench.writer, payload, owner=owner)
    assert bench.wire.sent == []
    made = await apply(bench.writer, ConfigMap("c", bench.namespace), owner=owner)
    restarted = Writer(bench.client, bench.world, bench.writer.manager)
    assert (await apply(restarted, ConfigMap("c", bench.namespace), owner=owner)).uid == made.uid


LOOSE = kind("loose.fairlead.test/v1", "Loose")
SHAPES = [
    {"conditions": [None]},
    {"conditions": ["x", 1, None, []]},
    {"conditions": [{"status": "True"}, {"type": ["Ready"]}]},
    {"conditions": [{"type": "Ready", "observedGeneration": "9", "lastTransitionTime": 5}]},
    {"conditions": None, "observedGeneration": {}},
    {"observedGeneration": "9"},
    {"observedGeneration": 9.5},
    None,
]
NO_SHAPES = [{"conditions": {}}, {"conditions": "x"}, "text", 5, []]


async def loose(bench, content):
    """An object of a kind without a schema, with that in its status."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {**CRD["spec"]["versions"][0], "schema": schema}
    names = {"kind": "Loose", "plural": "looses", "singular": "loose", "listKind": "LooseList"}
    spec = {**CRD["spec"], "group": LOOSE.group, "names": names, "versions": [version]}
    await bench.other.create({**CRD, "metadata": {"name": "looses.loose.fairlead.test"}, "spec": spec})
    await bench.other.create(LOOSE("l", "default"))
    put = [{"op": "add", "path": "/status", "value": content}]
    return await bench.other.patch(LOOSE, "l", "default", put, type=PatchType.JSON, subresource="status")


async def report_on(content):
    bench = Bench(SimpleNamespace(namespace="default"), Server(World(), tokens=["t"]).transport())
    await install(bench.other)
    obj = await loose(bench, content)
    report = StatusReport(1)
    report.condition("Ready", True, "Because")
    after = await status.write_status(bench.writer, LOOSE, obj, report)
    again = await status.write_status(Writer(bench.client, bench.world, "ours"), LOOSE, after, report)
    assert again.resource_version == after.resource_version
    return after.status


@pytest.mark.parametrize("content", SHAPES, ids=map(str, SHAPES))
def test_a_report_stands_beside_what_is_no_condition(content):
    after = asyncio.run(report_on(content))
    ready = [each for each in after["conditions"] if isinstance(each, dict) and each.get("type") == "Ready"]
    assert [each["status"] for each in ready] == ["True"]
    assert after["observedGeneration"] == ready[0]["observedGeneration"] == 1
    theirs = [
        each for each in (content or {}).get("conditions") or () if "Ready" not in str(each) or each["type"] != "Ready"
    ]
    assert after["conditions"][: len(theirs)] == theirs


@pytest.mark.parametrize("content", NO_SHAPES, ids=map(str, NO_SHAPES))
def test_a_report_that_cannot_stand_says_why(content):
    with pytest.raises(WriteError, match=r"is not a (list|map)"):
        asyncio.run(report_on(content))
