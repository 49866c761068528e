"""Skipped applies would have changed nothing, for random payloads, drift and foreign fields."""

import asyncio
from types import SimpleNamespace

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from workbench import MANAGER, WIDGET, Bench, install

from fairlead.api.errors import Invalid
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.writes import apply
from fairlead.writes.json_patch import json_equal
from fairlead.writes.no_op import is_no_op

names = st.sampled_from("abc")
listener = st.fixed_dictionaries({}, optional={"port": st.integers(0, 2), "mode": st.sampled_from(["plain", "tls"])})
listeners = st.dictionaries(names, listener, max_size=3).map(
    lambda items: [{"name": name, **item} for name, item in items.items()]
)
spec = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 1),
        "note": st.sampled_from(["", "x"]),
        "listeners": listeners,
        "tags": st.lists(names, unique=True),
        "lines": st.lists(names, max_size=2),
        "options": st.dictionaries(names, names, max_size=2),
        "free": st.dictionaries(
            names, st.one_of(st.booleans(), st.integers(0, 1), st.just({}), st.just([])), max_size=2
        ),
    },
)
foreign = st.one_of(st.none(), spec)


async def check(before, drift, after):
    server = Server(World(), tokens=["t"])
    bench = Bench(SimpleNamespace(namespace="default"), server.transport())
    await install(bench.other)

    def payload(fields):
        return WIDGET("w", "default", labels={"always": "owned"}, **({"spec": fields} if fields else {}))

    seen = await bench.other.apply(payload(before), field_manager=MANAGER)
    if drift is not None:
        seen = await bench.merge(seen, {"spec": drift})
    skipped = is_no_op(payload(after), seen, MANAGER)
    try:
        applied = await bench.other.apply(payload(after), field_manager=MANAGER)
    except Invalid:  # A map whose last key is given up.
        assert not skipped
        return
    if skipped:
        assert json_equal({**applied, "metadata": 0}, {**seen, "metadata": 0})
    if json_equal(after, before) and drift is None:
        assert skipped, "an identical payload is recognized if the server normalizes nothing"
    await bench.transport.close()


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(spec, foreign, spec)
@example({"size": 1}, None, {"size": 1, "listeners": []})
@example({"listeners": [{"name": "a"}, {"name": "b"}]}, None, {"listeners": [{"name": "b"}, {"name": "a"}]})
@example({"options": {}}, {"options": {"a": "b"}}, {"options": {}})
@example({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {"tags": ["a", "b"]})
@example({"free": {"a": True}}, None, {"free": {"a": 1}})
def test_skipped_apply_would_have_changed_nothing(before, drift, after):
    asyncio.run(check(before, drift, after))


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(spec)
def test_identical_payload_is_not_sent_again(fields):
    asyncio.run(check(fields, None, fields))


async def test_empty_list_is_sent_where_another_manager_has_items(bench):
    first = await apply(bench.cached, WIDGET("w", bench.namespace, spec={"size": 1}))
    bench.view.put(WIDGET, await bench.merge(first, {"spec": {"lines": ["x"]}}))
    after = await apply(bench.cached, WIDGET("w", bench.namespace, spec={"size": 1, "lines": []}))
    assert after.spec["lines"] == []


async def test_empty_map_is_not_sent_where_another_manager_has_a_map(bench):
    first = await apply(bench.cached, WIDGET("w", bench.namespace, spec={"size": 1}))
    theirs = bench.view.put(WIDGET, await bench.merge(first, {"spec": {"options": {"a": "1"}}}))
    payload = WIDGET("w", bench.namespace, spec={"size": 1, "options": {}})
    bench.wire.forget()
    assert await apply(bench.cached, payload) == theirs
    assert bench.wire.sent == []
    assert (await bench.other.apply(payload, field_manager=MANAGER)).spec == theirs.spec
