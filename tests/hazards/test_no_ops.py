"""Hazards: no-ops and normalization. Each test shows a naive write, and what fairlead does instead."""

import dataclasses

import pytest
from workbench import WIDGET

from fairlead.api.builtin import ConfigMap, Deployment, Secret
from fairlead.writes import apply


def cm(bench, text="x"):
    return ConfigMap("c", bench.namespace, data={"a": text})


def deployment(bench, cpu="1000m"):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return Deployment("d", bench.namespace, spec=spec)


async def test_h47_repeated_apply_changes_no_version_and_is_not_sent(bench):
    first = await bench.other.apply(cm(bench), field_manager="naive")
    assert (await bench.other.apply(cm(bench), field_manager="naive")).resource_version == first.resource_version
    await apply(bench.cached, cm(bench), adopt=True)
    bench.wire.forget()
    await apply(bench.cached, cm(bench))
    assert bench.wire.sent == []


async def test_h48_first_apply_of_a_new_manager_changes_the_version_once(bench):
    first = await bench.other.apply(cm(bench), field_manager="a")
    second = await bench.other.apply(cm(bench), field_manager="b")
    assert second.resource_version != first.resource_version
    assert second.metadata["managedFields"][0]["manager"] == "b"
    assert "time" not in second.metadata["managedFields"][0]
    third = await bench.other.apply(cm(bench), field_manager="b")
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
async def test_h49_no_op_apply_does_not_change_the_version(bench, spec):
    payload = WIDGET("w", bench.namespace, spec=spec)
    first = await bench.other.apply(payload, field_manager="ours")
    for _ in range(2):
        assert (await bench.other.apply(payload, field_manager="ours")).resource_version == first.resource_version
    bench.view.put(WIDGET, first)
    await apply(bench.cached, payload)
    assert bench.wire.sent == []


async def test_h50_normalized_quantity_is_sent_only_once(bench):
    made = await apply(bench.cached, deployment(bench))
    [container] = made.spec["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == "1", "a comparison with the payload always differs"
    restarted = dataclasses.replace(bench.cached, last_writes={})
    bench.wire.forget()
    for _ in range(3):
        await apply(restarted, deployment(bench))
    assert bench.wire.writes == ["PATCH"]


async def test_h51_server_defaults_do_not_cause_a_write_loop(bench):
    made = await apply(bench.cached, deployment(bench, cpu="1"))
    assert made.spec["replicas"] == 1, "a default that the payload lacks"
    bench.wire.forget()
    await apply(dataclasses.replace(bench.cached, last_writes={}), deployment(bench, cpu="1"))
    assert bench.wire.sent == []


async def test_h52_drift_is_detected_without_a_generation(bench):
    made = await apply(bench.cached, cm(bench))
    drifted = bench.view.put(ConfigMap, await bench.merge(made, {"data": {"a": "drift"}}))
    assert drifted.metadata.get("generation") == made.metadata.get("generation")
    assert (await apply(bench.cached, cm(bench)))["data"] == {"a": "x"}


async def test_h53_key_omitted_from_string_data_is_removed(bench):
    def secret(**text):
        return Secret("s", bench.namespace, stringData=text)

    await bench.other.apply(secret(a="1", b="2"), field_manager="naive")
    assert set((await bench.other.apply(secret(a="1"), field_manager="naive"))["data"]) == {"a", "b"}
    await bench.other.delete(Secret, "s", bench.namespace)
    await apply(bench.writer, secret(a="1", b="2"))
    assert set((await apply(bench.writer, secret(a="1")))["data"]) == {"a"}
