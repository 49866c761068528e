"""Tests of the hazards of no-ops and normalization: a naive write, and the write of fairlead."""

import dataclasses

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap, Deployment, Secret
from fairlead.writes import apply


def cm(env, value="x"):
    return ConfigMap("c", env.namespace, data={"a": value})


def deployment(env, cpu="1000m"):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return Deployment("d", env.namespace, spec=spec)


async def test_h47_repeated_apply_changes_no_version_and_is_not_sent(env):
    first = await env.foreign_client.apply(cm(env), field_manager="naive")
    assert (await env.foreign_client.apply(cm(env), field_manager="naive")).resource_version == first.resource_version
    await apply(env.cached_writer, cm(env), adopt=True)
    env.faulty_transport.forget_requests()
    await apply(env.cached_writer, cm(env))
    assert env.faulty_transport.sent_requests == []


async def test_h48_first_apply_of_a_new_manager_changes_the_version_once(env):
    first = await env.foreign_client.apply(cm(env), field_manager="a")
    second = await env.foreign_client.apply(cm(env), field_manager="b")
    assert second.resource_version != first.resource_version
    assert second.metadata["managedFields"][0]["manager"] == "b"
    assert "time" not in second.metadata["managedFields"][0]
    third = await env.foreign_client.apply(cm(env), field_manager="b")
    assert third.resource_version == second.resource_version


@pytest.mark.parametrize(
    "spec",
    [
        {"size": 0},
        {"listeners": [{"name": "a"}]},  # A default inside an item.
        {"options": {}},
        {"free": {"a": {"b": []}}},
        {"listeners": [], "tags": [], "size": 1},
    ],
    ids=["zero", "default in an item", "empty map", "free", "empty lists"],
)
async def test_h49_no_op_apply_does_not_change_the_version(env, spec):
    payload = WIDGET("w", env.namespace, spec=spec)
    first = await env.foreign_client.apply(payload, field_manager="ours")
    for _ in range(2):
        assert (
            await env.foreign_client.apply(payload, field_manager="ours")
        ).resource_version == first.resource_version
    env.cache.put(WIDGET, first)
    await apply(env.cached_writer, payload)
    assert env.faulty_transport.sent_requests == []


async def test_h50_normalized_quantity_is_sent_only_once(env):
    applied = await apply(env.cached_writer, deployment(env))
    [container] = applied.spec["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == "1", "a comparison with the payload always differs"
    restarted = dataclasses.replace(env.cached_writer, last_writes={})
    env.faulty_transport.forget_requests()
    for _ in range(3):
        await apply(restarted, deployment(env))
    assert env.faulty_transport.writes == ["PATCH"]


async def test_h51_server_defaults_do_not_cause_a_write_loop(env):
    applied = await apply(env.cached_writer, deployment(env, cpu="1"))
    assert applied.spec["replicas"] == 1, "a default that the payload lacks"
    env.faulty_transport.forget_requests()
    await apply(dataclasses.replace(env.cached_writer, last_writes={}), deployment(env, cpu="1"))
    assert env.faulty_transport.sent_requests == []


async def test_h52_drift_is_detected_without_a_generation(env):
    applied = await apply(env.cached_writer, cm(env))
    drifted = env.cache.put(ConfigMap, await env.merge_patch(applied, {"data": {"a": "drift"}}))
    assert drifted.metadata.get("generation") == applied.metadata.get("generation")
    assert (await apply(env.cached_writer, cm(env)))["data"] == {"a": "x"}


async def test_h53_key_omitted_from_string_data_is_removed(env):
    def secret(**string_data):
        return Secret("s", env.namespace, stringData=string_data)

    await env.foreign_client.apply(secret(a="1", b="2"), field_manager="naive")
    assert set((await env.foreign_client.apply(secret(a="1"), field_manager="naive"))["data"]) == {"a", "b"}
    await env.foreign_client.delete(Secret, "s", env.namespace)
    await apply(env.writer, secret(a="1", b="2"))
    assert set((await apply(env.writer, secret(a="1")))["data"]) == {"a"}
