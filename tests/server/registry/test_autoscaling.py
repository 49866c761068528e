"""Tests of the conversion of HorizontalPodAutoscalers between autoscaling/v1 and v2."""

import pytest

from fairlead.server.registry.autoscaling import to_v1, to_v2

REF = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
VALUE, AVERAGE = {"type": "Value", "value": "5"}, {"type": "AverageValue", "averageValue": "5"}
METRICS = [
    {"type": "Pods", "pods": {"metric": {"name": "p", "selector": {}}, "target": AVERAGE}},
    {"type": "Object", "object": {"describedObject": REF, "metric": {"name": "o"}, "target": VALUE}},
    {"type": "Object", "object": {"describedObject": REF, "metric": {"name": "o"}, "target": AVERAGE}},
    {"type": "External", "external": {"metric": {"name": "e"}, "target": VALUE}},
    {"type": "External", "external": {"metric": {"name": "e"}, "target": AVERAGE}},
    {"type": "Resource", "resource": {"name": "memory", "target": AVERAGE}},
]


def autoscaler(version, spec, status=None, **metadata):
    kind = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": "a", **metadata}, "spec": spec, "status": status or {}}


def test_cpu_utilization_is_a_field_of_v1():
    assert to_v1(autoscaler("v2", {"metrics": [CPU]})) == autoscaler("v1", {"targetCPUUtilizationPercentage": 50})
    assert to_v2(autoscaler("v1", {"targetCPUUtilizationPercentage": 50})) == autoscaler("v2", {"metrics": [CPU]})


def test_without_a_metric_v1_implies_eighty_percent():
    converted = to_v2(autoscaler("v1", {}))["spec"]["metrics"]
    assert [metric["resource"]["target"]["averageUtilization"] for metric in converted] == [80]


@pytest.mark.parametrize("metric", METRICS)
def test_v1_stores_other_metrics_in_an_annotation(metric):
    converted = to_v1(autoscaler("v2", {"metrics": [metric]}, annotations={"mine": "x"}))
    assert set(converted["metadata"]["annotations"]) == {"mine", "autoscaling.alpha.kubernetes.io/metrics"}
    assert to_v2(converted) == autoscaler("v2", {"metrics": [metric]}, annotations={"mine": "x"})


def test_v1_stores_behavior_and_conditions_in_annotations():
    behavior = {
        "scaleUp": {"stabilizationWindowSeconds": 3, "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}
    }
    status = {"conditions": [{"type": "AbleToScale", "status": "True"}]}
    v2_autoscaler = autoscaler("v2", {"metrics": [CPU], "behavior": behavior}, status)
    assert to_v2(to_v1(v2_autoscaler)) == v2_autoscaler


def test_unparsable_annotation_is_dropped():
    annotations = {"autoscaling.alpha.kubernetes.io/metrics": "{", "autoscaling.alpha.kubernetes.io/behavior": "null"}
    converted = to_v2(autoscaler("v1", {"targetCPUUtilizationPercentage": 50}, annotations=annotations))
    assert converted == autoscaler("v2", {"metrics": [CPU]})
