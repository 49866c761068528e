"""Tests of the defaults and bounds of LimitRanges."""

from fairlead.server.admission.limit_ranges import ANNOTATION, check_claim, check_pod, set_defaults

RANGE = {
    "spec": {
        "limits": [
            {
                "type": "Container",
                "default": {"cpu": "2"},
                "defaultRequest": {"cpu": "1"},
                "max": {"cpu": "3"},
                "min": {"cpu": "100m"},
            }
        ]
    }
}


def pod(**resources):
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}}


def test_pod_without_resources_gets_the_defaults():
    completed = set_defaults(pod(), [RANGE])
    assert completed["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    assert completed["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    )


def test_pod_with_all_resources_is_unchanged():
    complete_pod = pod(limits={"cpu": "1"}, requests={"cpu": "1"})
    assert set_defaults(complete_pod, [RANGE]) is complete_pod
    assert set_defaults(pod(), []) == pod()


def test_container_beyond_a_bound_is_rejected():
    assert check_pod(pod(limits={"cpu": "9"}, requests={"cpu": "1"}), [RANGE]) == (
        "maximum cpu usage per Container is 3, but limit is 9"
    )
    assert check_pod(pod(limits={"cpu": "1"}, requests={"cpu": "1m"}), [RANGE]) == (
        "minimum cpu usage per Container is 100m, but request is 1m"
    )
    assert (
        check_pod(pod(limits={"cpu": "1"}), [RANGE])
        == "minimum cpu usage per Container is 100m.  No request is specified"
    )
    assert check_pod(pod(limits={"cpu": "1"}, requests={"cpu": "1"}), [RANGE]) == ""


def test_pod_bound_counts_concurrent_containers_or_the_largest_init_container():
    pod_range = {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}}
    running, starting = ({"name": "c", "resources": {"limits": {"cpu": n}}} for n in ("1500m", "3"))
    assert check_pod({"spec": {"containers": [running]}}, [pod_range]) == ""
    assert check_pod({"spec": {"containers": [running, running]}}, [pod_range]) == (
        "maximum cpu usage per Pod is 2, but limit is 3"
    )
    assert "limit is 3" in check_pod({"spec": {"containers": [running], "initContainers": [starting]}}, [pod_range])
    sidecar = {**running, "restartPolicy": "Always"}
    assert "limit is 3" in check_pod({"spec": {"containers": [running], "initContainers": [sidecar]}}, [pod_range])


def test_limit_beyond_the_ratio_to_the_request_is_rejected():
    ratio = {"spec": {"limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "3"}}]}}
    assert check_pod(pod(limits={"cpu": "3"}, requests={"cpu": "1"}), [ratio]) == ""
    message = "cpu max limit to request ratio per Container is 3, but "
    assert (
        check_pod(pod(limits={"cpu": "1"}, requests={"cpu": "300m"}), [ratio]) == f"{message}provided ratio is 3.333333"
    )
    assert check_pod(pod(limits={"cpu": "1"}), [ratio]) == f"{message}no request is specified or request is 0"


def test_claim_beyond_a_bound_is_rejected():
    bounds = {
        "spec": {"limits": [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}]}
    }
    for size, message in [
        ("5Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi"),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
        ("1Gi", ""),
    ]:
        assert check_claim({"spec": {"resources": {"requests": {"storage": size}}}}, [bounds]) == message
