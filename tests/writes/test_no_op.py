"""Tests that an apply that is skipped would have changed nothing, for random payloads, drift and foreign fields."""

import asyncio
from types import SimpleNamespace

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from workbench import MANAGER, WIDGET, WriteTestEnvironment, install

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


async def check_skipped_apply(before, drift, after):
    server = Server(World(), tokens=["t"])
    env = WriteTestEnvironment(SimpleNamespace(namespace="default"), server.transport())
    await install(env.foreign_client)

    def payload(fields):
        return WIDGET("w", "default", labels={"always": "owned"}, **({"spec": fields} if fields else {}))

    applied_before = await env.foreign_client.apply(payload(before), field_manager=MANAGER)
    if drift is not None:
        applied_before = await env.merge_patch(applied_before, {"spec": drift})
    is_skipped = is_no_op(payload(after), applied_before, MANAGER)
    try:
        applied = await env.foreign_client.apply(payload(after), field_manager=MANAGER)
    except Invalid:  # A map whose last key is given up.
        assert not is_skipped
        return
    if is_skipped:
        assert json_equal({**applied, "metadata": 0}, {**applied_before, "metadata": 0})
    if json_equal(after, before) and drift is None:
        assert is_skipped, "an identical payload is recognized if the server normalizes nothing"
    await env.transport.close()


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(spec, foreign, spec)
@example({"size": 1}, None, {"size": 1, "listeners": []})
@example({"listeners": [{"name": "a"}, {"name": "b"}]}, None, {"listeners": [{"name": "b"}, {"name": "a"}]})
@example({"options": {}}, {"options": {"a": "b"}}, {"options": {}})
@example({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {"tags": ["a", "b"]})
@example({"free": {"a": True}}, None, {"free": {"a": 1}})
def test_skipped_apply_would_have_changed_nothing(before, drift, after):
    asyncio.run(check_skipped_apply(before, drift, after))


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(spec)
def test_identical_payload_is_not_sent_again(fields):
    asyncio.run(check_skipped_apply(fields, None, fields))


async def test_empty_list_is_sent_where_another_manager_has_items(env):
    first = await apply(env.cached_writer, WIDGET("w", env.namespace, spec={"size": 1}))
    env.cache.put(WIDGET, await env.merge_patch(first, {"spec": {"lines": ["x"]}}))
    after = await apply(env.cached_writer, WIDGET("w", env.namespace, spec={"size": 1, "lines": []}))
    assert after.spec["lines"] == []


async def test_empty_map_is_not_sent_where_another_manager_has_a_map(env):
    first = await apply(env.cached_writer, WIDGET("w", env.namespace, spec={"size": 1}))
    theirs = env.cache.put(WIDGET, await env.merge_patch(first, {"spec": {"options": {"a": "1"}}}))
    payload = WIDGET("w", env.namespace, spec={"size": 1, "options": {}})
    env.faulty_transport.forget_requests()
    assert await apply(env.cached_writer, payload) == theirs
    assert env.faulty_transport.sent_requests == []
    assert (await env.foreign_client.apply(payload, field_manager=MANAGER)).spec == theirs.spec
