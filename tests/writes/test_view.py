"""What a deciding function reads becomes what is tested, no more and no less."""

import copy

import pytest

from fairlead.writes.guards import patch_of
from fairlead.writes.jsonpatch import tests_hold as holds
from fairlead.writes.view import Draft, Ledger

OBJ = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"a/b": "1"}},
    "spec": {"size": 3, "ports": [{"name": "x", "port": 1}, {"name": "y", "port": 2}], "empty": {}, "note": None},
    "status": {"phase": "Old"},
}


def patch(function, obj=OBJ):
    before = copy.deepcopy(obj)
    ledger = Ledger(obj)
    function(Draft(ledger))
    assert obj == before, "the object itself is never changed"
    return patch_of(ledger)


def guards_of(function):
    """The tests of the patch beyond uid and the write that makes it worth sending."""

    def write_too(draft):
        function(draft)
        draft.status["mark"] = 1

    ops = patch(write_too)
    assert ops[0] == {"op": "test", "path": "/metadata/uid", "value": "u"}
    tests = {op["path"]: op["value"] for op in ops[1:] if op["op"] == "test"}
    tests.pop("/status/mark", None)
    return tests


READS = [
    ("a scalar", lambda d: d.spec["size"], {"/spec/size": 3}),
    ("a scalar by get", lambda d: d.get("spec").get("size"), {"/spec/size": 3}),
    ("an absence", lambda d: d.spec.get("none"), {"/spec/none": None}),
    ("an absence asked with in", lambda d: "none" in d.spec, {"/spec/none": None}),
    ("an absence below an absence", lambda d: d.annotations.get("x"), {"/metadata/annotations": None}),
    ("a null", lambda d: d.spec.get("note"), {"/spec/note": None}),
    ("a key with a slash", lambda d: d.labels["a/b"], {"/metadata/labels/a~1b": "1"}),
    ("the keys of a map", lambda d: list(d.labels), {"/metadata/labels": {"a/b": "1"}}),
    ("the length of a map", lambda d: len(d.labels), {"/metadata/labels": {"a/b": "1"}}),
    ("that a map is there", lambda d: d["spec"]["empty"] is None, {"/spec/empty/": None}),
    ("that an empty map is empty", lambda d: bool(d["spec"]["empty"]), {"/spec/empty": {}}),
    ("that a map is not empty", lambda d: bool(d.labels), {"/metadata/labels": {"a/b": "1"}}),
    ("or {}", lambda d: (d.get("spec") or {}).get("size"), {"/spec/size": 3}),
    ("or {} on an absence", lambda d: (d.metadata.get("annotations") or {}).get("x"), {"/metadata/annotations": None}),
    ("one item", lambda d: d.spec["ports"][1]["port"], {"/spec/ports/1/port": 2}),
    ("items up to the one found", lambda d: next(p for p in d.spec["ports"] if p["name"] == "x")["port"],
     {"/spec/ports/0/name": "x", "/spec/ports/0/port": 1}),
    ("a list to its end", lambda d: [p["name"] for p in d.spec["ports"]], {"/spec/ports": OBJ["spec"]["ports"]}),
    ("the length of a list", lambda d: len(d.spec["ports"]), {"/spec/ports": OBJ["spec"]["ports"]}),
    ("the last item", lambda d: d.spec["ports"][-1]["name"], {"/spec/ports": OBJ["spec"]["ports"]}),
    ("an absence in an item", lambda d: d.spec["ports"][0].get("none"), {"/spec/ports": OBJ["spec"]["ports"]}),
    ("a map compared", lambda d: d.labels == {}, {"/metadata/labels": {"a/b": "1"}}),
    ("a plain copy", lambda d: copy.deepcopy(d.labels), {"/metadata/labels": {"a/b": "1"}}),
    ("metadata whole is the resourceVersion", lambda d: dict(d.metadata), {"/metadata/resourceVersion": "7"}),
    ("everything is the resourceVersion", lambda d: d.plain(), {"/metadata/resourceVersion": "7"}),
    ("identity is tested anyway", lambda d: (d.uid, d.name, d.namespace, d["kind"]), {}),
    ("a missing condition", lambda d: d.is_true("Ready"), {"/status/conditions": None}),
    ("that nobody deletes it", lambda d: d.deleting, {"/metadata/deletionTimestamp": None}),
    ("what it wrote itself", lambda d: (d.spec.update(new=1), d.spec["new"])[1], {"/spec/new": None}),
    ("nothing", lambda d: None, {}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "expected"), [(f, e) for _, f, e in READS], ids=[name for name, _, _ in READS])
def test_reads_are_tested_as_what_they_are(function, expected):
    assert guards_of(function) == expected


def change(function, obj=OBJ):
    ops = patch(function, obj)
    assert holds(obj, ops)
    return [tuple(op.values()) for op in ops[1:]]


def test_a_replaced_value_is_tested():
    assert change(lambda d: d.status.update(phase="New")) == [
        ("test", "/status/phase", "Old"),
        ("replace", "/status/phase", "New"),
    ]


def test_a_filled_absence_is_tested():
    assert change(lambda d: d.status.update(plan={"id": 1})) == [
        ("test", "/status/plan", None),
        ("add", "/status/plan", {"id": 1}),
    ]


def test_an_absence_is_guarded_at_its_first_missing_ancestor_and_made_in_one_piece():
    def annotate(draft):
        draft.annotations["x"] = "1"
        draft.annotations["y"] = "2"

    assert change(annotate) == [
        ("test", "/metadata/annotations", None),
        ("add", "/metadata/annotations", {"x": "1", "y": "2"}),
    ]


def test_an_absence_in_an_item_is_guarded_by_the_list():
    def add(draft):
        draft.spec["ports"][0]["protocol"] = "UDP"

    assert change(add) == [
        ("test", "/spec/ports", OBJ["spec"]["ports"]),
        ("add", "/spec/ports/0/protocol", "UDP"),
    ]


def test_a_removal_is_tested():
    def remove(draft):
        del draft.spec["size"]

    assert change(remove) == [("test", "/spec/size", 3), ("remove", "/spec/size")]


def test_a_changed_list_is_tested_whole():
    def append(draft):
        draft.spec["ports"].append({"name": "z"})

    assert change(append) == [
        ("test", "/spec/ports", OBJ["spec"]["ports"]),
        ("replace", "/spec/ports", [*OBJ["spec"]["ports"], {"name": "z"}]),
    ]


def test_a_change_to_what_is_there_already_is_no_change():
    def same_again(draft):
        draft.status["phase"] = "Old"
        draft.spec["ports"] = [{"port": 1, "name": "x"}, {"name": "y", "port": 2}]
        draft.spec.pop("none", None)

    assert patch(same_again) == []


def test_own_changes_are_seen_and_later_ones_win():
    def function(draft):
        draft.status["plan"] = {"steps": ["a"]}
        draft.status["plan"]["steps"].append("b")
        assert draft.status["plan"]["steps"] == ["a", "b"]
        assert "plan" in draft.status
        assert set(draft.status) == {"phase", "plan"}
        draft.spec["ports"][0]["port"] = 9
        draft.spec["ports"].append({"name": "z"})
        assert [port.get("port") for port in draft.spec["ports"]] == [9, 2, None]
        del draft.status["plan"]
        assert "plan" not in draft.status

    replaced = [op for op in patch(function) if op["op"] != "test"]
    assert [op["path"] for op in replaced] == ["/spec/ports"]
    assert replaced[0]["value"] == [{"name": "x", "port": 9}, {"name": "y", "port": 2}, {"name": "z"}]


def test_a_true_and_a_one_are_not_the_same():
    obj = {**OBJ, "spec": {"on": True}}
    assert change(lambda d: d.spec.update(on=1), obj) == [("test", "/spec/on", True), ("replace", "/spec/on", 1)]
