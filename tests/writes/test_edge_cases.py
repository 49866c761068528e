"""Tests of unusual keys, numbers, nulls and shapes in an object, and of values that cannot be written."""

import asyncio
import datetime
from types import SimpleNamespace

import pytest
from workbench import CRD, WIDGET, WriteTestEnvironment, install

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


async def test_any_key_can_be_read_set_and_removed_in_one_request(env):
    widget = await env.widget(spec={"free": dict.fromkeys(KEYS, "old")})

    def read(draft):
        draft.status["phase"] = " ".join(f"{key} {draft.spec['free'][key]}" for key in KEYS)

    def replace(draft):
        draft.spec["free"].update({key: {key: {key: "deep"}} for key in KEYS})

    def read_one_item(draft):
        for key in KEYS:
            draft.spec["free"][key][key][key] += "er"
            draft.spec["free"][key][f"new{key}"] = key

    def remove(draft):
        for key in KEYS:
            del draft.spec["free"][key][key]

    for change in (read, replace, read_one_item, remove):
        widget = (await decide(env.writer, WIDGET, widget, change)).object
    assert widget.spec["free"] == {key: {f"new{key}": key} for key in KEYS}
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"] * 4


NUMBERS = [2**53 + 1, 2**63 - 1, -(2**63), 0, 1.5, 1e-7, 1e21, 0.1 + 0.2, 1e300, 5e-324, 1e-6, 123456789.123456789]
INTEGERS_BEYOND_64_BITS = [2**63, 2**64, 2**70, 10**30, -(2**63) - 1]


async def test_numbers_are_guarded_and_an_unchanged_decision_is_not_sent(env):
    widget = await env.widget(spec={"free": {"numbers": NUMBERS}})

    def decision(draft):
        draft.spec["free"]["copies"] = [*draft.spec["free"]["numbers"], {"long": INTEGERS_BEYOND_64_BITS}]

    widget = (await decide(env.writer, WIDGET, widget, decision)).object
    assert widget.spec["free"]["copies"][:-1] == NUMBERS
    assert not (await decide(env.writer, WIDGET, widget, decision)).changed
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"]


async def test_list_that_contains_null_can_be_read(env):
    """Tests a list with a null: a real server closes the connection if a patch tests such a list."""
    items = [None, 1, {"x": None}, []]
    widget = await env.widget(spec={"free": {"l": items, "m": {"l": [items]}}})

    def read_whole_list(draft):
        draft.status["phase"] = str(draft.spec["free"])

    def append(draft):
        if None in draft.spec["free"]["l"]:
            draft.spec["free"]["l"].append(None)

    def read_one_item(draft):
        draft.spec["free"]["l"][2]["y"] = draft.spec["free"]["l"][1]
        draft.spec["free"]["l"][0] = "was null"

    for change in (read_whole_list, append, read_one_item):
        widget = (await decide(env.writer, WIDGET, widget, change)).object
    assert widget.spec["free"]["l"] == ["was null", 1, {"x": None, "y": 1}, [], None]
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["PATCH"] * 3


async def test_repeatedly_lost_answer_raises_unknown_outcome(env):
    """Tests repeatedly lost responses: they are not contention, because no other writer changed the object."""
    widget = await env.widget(status={"counts": {"n": 0}})

    def increment(draft):
        draft.status["counts"]["n"] += 1

    env.faulty_transport.lost_responses = 100
    with pytest.raises(UnknownOutcome):
        await decide(env.writer, WIDGET, widget, increment)
    assert env.faulty_transport.writes == ["PATCH", "PATCH"]


WRITES_WITHOUT_RESPONSE = {
    "apply": lambda env, obj: apply(env.writer, ConfigMap("c", env.namespace, data={"a": "1"}), owner=obj),
    "migrate": lambda env, obj: migrate(env.writer, WIDGET, obj, fields=["spec"], managers=["maker"]),
}


@pytest.mark.parametrize("write", WRITES_WITHOUT_RESPONSE.values(), ids=WRITES_WITHOUT_RESPONSE.keys())
async def test_write_that_never_arrives_raises_unknown_outcome(env, monkeypatch, write):
    """Tests a write that is always lost while reads succeed: a retry would never end."""
    widget, sent_requests = await env.widget(spec={"size": 1}), []

    async def raise_lost(*args, **options):
        sent_requests.append(args)
        raise UnknownOutcome("the answer was lost")

    monkeypatch.setattr(env.client, "apply", raise_lost)
    monkeypatch.setattr(env.client, "patch", raise_lost)
    with pytest.raises(UnknownOutcome):
        await write(env, widget)
    assert len(sent_requests) == 2


SINGLE_STRINGS = {
    "fields": lambda env, obj: migrate(env.writer, WIDGET, obj, fields="spec", managers=["maker"]),
    "managers": lambda env, obj: migrate(env.writer, WIDGET, obj, fields=["spec"], managers="maker-of-all"),
    "only": lambda env, obj: decide(env.writer, WIDGET, obj, lambda draft: draft.spec.clear(), only="spec"),
}


@pytest.mark.parametrize("option", SINGLE_STRINGS)
async def test_single_string_is_not_accepted_as_a_list(env, option):
    """Tests a string instead of a list: "maker" would match "maker-of-all" as a substring."""
    widget = await env.widget(spec={"size": 1})
    with pytest.raises(ValueError, match=rf"{option}=.* is a string, not a list: write {option}=\["):
        await SINGLE_STRINGS[option](env, widget)
    assert env.faulty_transport.sent_requests == []


def test_single_string_is_not_accepted_as_former_field_managers():
    for create_writer in (
        lambda: Operator("o", formerly="old"),
        lambda: Writer(None, World(), "o", former_managers="old"),
    ):
        with pytest.raises(ValueError, match=r"former\w+='old' is a string"):
            create_writer()


WRITES = {
    "delete": lambda env, obj: delete(env.writer, WIDGET, obj),
    "decide": lambda env, obj: decide(env.writer, WIDGET, obj, lambda draft: draft.status.update(phase="x")),
    "report": lambda env, obj: status.write_status(env.writer, WIDGET, obj, StatusReport(1)),
    "finalizer": lambda env, obj: finalizers.add(env.writer, WIDGET, obj, "a.b/c"),
    "migrate": lambda env, obj: migrate(env.writer, WIDGET, obj, fields=["spec"], managers=["maker"]),
    "own": lambda env, obj: apply(env.writer, ConfigMap("c", env.namespace), owner=obj),
}


@pytest.mark.parametrize("name", [name for name in WRITES if name != "own"])
async def test_object_of_another_kind_is_rejected(env, name):
    other = await env.config_map("w")
    with pytest.raises(ValueError, match=f"Widget {env.namespace}/w was expected, but the object is a ConfigMap"):
        await WRITES[name](env, other)
    assert env.faulty_transport.sent_requests == []


async def test_owner_with_only_metadata_is_rejected(env):
    await env.widget("owner")
    [owner] = (await env.foreign_client.list(WIDGET, env.namespace, metadata_only=True)).items
    with pytest.raises(ValueError, match="only the metadata of the owner owner was read: read the whole object"):
        await WRITES["own"](env, owner)
    assert env.faulty_transport.sent_requests == []


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_object_without_a_uid_is_rejected(env, write):
    widget = await env.widget(spec={"size": 1})
    with pytest.raises(ValueError, match="has no uid: pass the object as the server returned it"):
        await write(env, Object(WIDGET("w", env.namespace, spec={"size": 1})))
    assert env.faulty_transport.sent_requests == []
    assert await env.get_live(widget) == widget


SERVER_MANAGED = {
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


@pytest.mark.parametrize(("path", "change"), SERVER_MANAGED.items(), ids=SERVER_MANAGED.keys())
async def test_decision_cannot_change_server_managed_fields(env, path, change):
    """Tests fields such as managedFields: emptying them would remove the ownership of all managers."""
    widget = await env.widget(spec={"size": 1})
    with pytest.raises(WriteError, match=f"changes {path}, which the server manages"):
        await decide(env.writer, WIDGET, widget, change)
    assert env.faulty_transport.sent_requests == []


async def test_decision_cannot_change_string_data(env):
    """Tests stringData: a patch cannot test it, and the server merges it into data."""
    secret = await env.foreign_client.create(Secret("s", env.namespace, data={"a": "b2xk"}))
    theirs = await env.merge_patch(secret, {"data": {"a": "dGhlaXJz"}})
    with pytest.raises(WriteError, match=r"changes stringData.*: change data instead, encoded in base64"):
        await decide(env.writer, Secret, secret, lambda draft: draft.update(stringData={"a": "ours"}))
    assert await env.get_live(secret) == theirs


CYCLIC = {}
CYCLIC["again"] = [CYCLIC]
UNREPRESENTABLE = [
    ({80: "x"}, "the key 80 of .* must be text.*: quote it"),
    ({"a": {None: 1}}, "the key None of .* must be text"),
    ({"a": "\ud800"}, "contains a lone surrogate.*: decode it with"),
    ({"\udfff": 1}, "the key .* contains a lone surrogate"),
    (CYCLIC, "contains itself, or is nested without end: use a copy"),
    (float("nan"), "which JSON cannot represent: use a finite number"),
    (float("inf"), "which JSON cannot represent: use a finite number"),
    ([float("-inf")], "which JSON cannot represent: use a finite number"),
    (object(), "of type object, which JSON cannot represent"),
    ({"a": [{1, "x"}]}, "of type set, which JSON cannot represent"),
]


@pytest.mark.parametrize(
    ("value", "message"), UNREPRESENTABLE, ids=[message.partition(",")[0] for _, message in UNREPRESENTABLE]
)
async def test_values_that_json_cannot_represent_are_rejected(env, value, message):
    widget = await env.widget()
    with pytest.raises(ValueError, match=message):
        await decide(env.writer, WIDGET, widget, lambda draft: draft.spec.update(free={"n": value}))
    with pytest.raises(ValueError, match=message):
        await defaults.fill(env.writer, WIDGET, widget, {"spec": {"free": {"n": value}}})
    with pytest.raises(ValueError, match=rf"Widget {env.namespace}/c.*{message}") as error:
        await apply(env.writer, WIDGET("c", env.namespace, spec={"free": {"n": value}}))
    assert "spec.free.n" in str(error.value) or value is CYCLIC
    with pytest.raises(ValueError, match=message) as error:
        StatusReport(1).set(phase=value)
    assert "status.phase" in str(error.value)
    assert env.faulty_transport.sent_requests == []


async def test_part_of_the_object_cannot_contain_itself(env):
    widget = await env.widget(status={"phase": "Old"})
    with pytest.raises(ValueError, match=r"the result of the decision contains itself.*: use a copy"):
        await decide(env.writer, WIDGET, widget, lambda draft: draft.status.update(plan=draft.status))
    expected = {"phase": "Old", "plan": {"id": "Old"}}
    decided = await decide(
        env.writer, WIDGET, widget, lambda draft: draft.status.update(plan={"id": draft.status["phase"]})
    )
    assert decided.object.status == expected


@pytest.mark.parametrize(
    "condition", [("A", True, None), (None, True, "R"), ("A", True, "R", ValueError("x"))], ids=str
)
def test_condition_with_a_value_that_is_not_text_is_rejected(condition):
    with pytest.raises(ValueError, match=r"of condition .* must be text.*: quote it, or use str\(\)"):
        StatusReport(1).condition(*condition)


async def test_times_bytes_and_tuples_are_converted_to_json(env):
    widget = await env.widget()
    value = {"t": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "b": b"x", "l": (1, 2)}
    for _ in range(2):
        widget = (await decide(env.writer, WIDGET, widget, lambda draft: draft.spec.update(free=value))).object
    assert widget.spec["free"] == {"t": "2026-01-01T00:00:00Z", "b": "eA==", "l": [1, 2]}
    assert env.faulty_transport.writes == ["PATCH"]


async def test_equal_sets_are_written_in_the_same_order(env):
    widget = await env.widget()
    for value in ({8, 0, 16}, {16, 8, 0}):
        spec = {"free": {"s": value}}
        child = await apply(env.cached_writer, WIDGET("c", env.namespace, spec=spec), owner=widget)
        widget = (await decide(env.writer, WIDGET, widget, lambda draft, spec=spec: draft.spec.update(spec))).object
    assert (child.spec, widget.spec) == ({"free": {"s": [0, 8, 16]}},) * 2
    assert env.faulty_transport.writes == ["PATCH", "PATCH"]


async def test_child_without_fields_and_owner_is_rejected(env):
    """Tests a child without fields: it would have no Apply entry, so after a restart it would look foreign."""
    owner = await env.widget("owner")
    for payload in (Namespace(f"{env.namespace}-x"), ConfigMap("c", "default", labels=None)):
        with pytest.raises(ValueError, match="give it a label"):
            await apply(env.writer, payload, owner=owner)
    assert env.faulty_transport.sent_requests == []
    applied = await apply(env.writer, ConfigMap("c", env.namespace), owner=owner)
    restarted = Writer(env.client, env.world, env.writer.manager)
    assert (await apply(restarted, ConfigMap("c", env.namespace), owner=owner)).uid == applied.uid


LOOSE = kind("loose.fairlead.test/v1", "Loose")
ACCEPTED = [
    {"conditions": [None]},
    {"conditions": ["x", 1, None, []]},
    {"conditions": [{"status": "True"}, {"type": ["Ready"]}]},
    {"conditions": [{"type": "Ready", "observedGeneration": "9", "lastTransitionTime": 5}]},
    {"conditions": None, "observedGeneration": {}},
    {"observedGeneration": "9"},
    {"observedGeneration": 9.5},
    None,
]
MALFORMED = [{"conditions": {}}, {"conditions": "x"}, "text", 5, []]


async def create_loose_object(env, content):
    """Create an object of a kind without a schema, with `content` as its status."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {**CRD["spec"]["versions"][0], "schema": schema}
    names = {"kind": "Loose", "plural": "looses", "singular": "loose", "listKind": "LooseList"}
    spec = {**CRD["spec"], "group": LOOSE.group, "names": names, "versions": [version]}
    await env.foreign_client.create({**CRD, "metadata": {"name": "looses.loose.fairlead.test"}, "spec": spec})
    await env.foreign_client.create(LOOSE("l", "default"))
    status_patch = [{"op": "add", "path": "/status", "value": content}]
    return await env.foreign_client.patch(
        LOOSE, "l", "default", status_patch, type=PatchType.JSON, subresource="status"
    )


async def report_on(content):
    env = WriteTestEnvironment(SimpleNamespace(namespace="default"), Server(World(), tokens=["t"]).transport())
    await install(env.foreign_client)
    obj = await create_loose_object(env, content)
    report = StatusReport(1)
    report.condition("Ready", True, "Because")
    after = await status.write_status(env.writer, LOOSE, obj, report)
    again = await status.write_status(Writer(env.client, env.world, "ours"), LOOSE, after, report)
    assert again.resource_version == after.resource_version
    return after.status


@pytest.mark.parametrize("content", ACCEPTED, ids=map(str, ACCEPTED))
def test_report_is_written_beside_malformed_conditions(content):
    after = asyncio.run(report_on(content))
    ready_conditions = [item for item in after["conditions"] if isinstance(item, dict) and item.get("type") == "Ready"]
    assert [item["status"] for item in ready_conditions] == ["True"]
    assert after["observedGeneration"] == ready_conditions[0]["observedGeneration"] == 1
    theirs = [
        item for item in (content or {}).get("conditions") or () if "Ready" not in str(item) or item["type"] != "Ready"
    ]
    assert after["conditions"][: len(theirs)] == theirs


@pytest.mark.parametrize("content", MALFORMED, ids=map(str, MALFORMED))
def test_report_into_a_malformed_status_is_rejected(content):
    with pytest.raises(WriteError, match=r"is not a (list|map)"):
        asyncio.run(report_on(content))
