from fairlead.server.admission.limit_ranges import ANNOTATION, claim_refusal, limited, refusal

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


def test_a_pod_gets_what_it_leaves_out():
    made = limited(pod(), [RANGE])
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    assert made["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    )


def test_a_pod_that_says_all_is_left_alone():
    given = pod(limits={"cpu": "1"}, requests={"cpu": "1"})
    assert limited(given, [RANGE]) is given
    assert limited(pod(), []) == pod()


def test_bounds_refuse():
    assert refusal(pod(limits={"cpu": "9"}, requests={"cpu": "1"}), [RANGE]) == (
        "maximum cpu usage per Container is 3, but limit is 9"
    )
    assert refusal(pod(limits={"cpu": "1"}, requests={"cpu": "1m"}), [RANGE]) == (
        "minimum cpu usage per Container is 100m, but request is 1m"
    )
    assert (
        refusal(pod(limits={"cpu": "1"}), [RANGE])
        == "minimum cpu usage per Container is 100m.  No request is specified"
    )
    assert refusal(pod(limits={"cpu": "1"}, requests={"cpu": "1"}), [RANGE]) == ""


def test_a_whole_pod_is_measured_by_what_runs_together_or_has_to_start():
    whole = {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}}
    running, starting = ({"name": "c", "resources": {"limits": {"cpu": n}}} for n in ("1500m", "3"))
    assert refusal({"spec": {"containers": [running]}}, [whole]) == ""
    assert refusal({"spec": {"containers": [running, running]}}, [whole]) == (
        "maximum cpu usage per Pod is 2, but limit is 3"
    )
    assert "limit is 3" in refusal({"spec": {"containers": [running], "initContainers": [starting]}}, [whole])
    sidecar = {**running, "restartPolicy": "Always"}
    assert "limit is 3" in refusal({"spec": {"containers": [running], "initContainers": [sidecar]}}, [whole])


def test_limits_are_held_to_a_multiple_of_requests():
    ratio = {"spec": {"limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "3"}}]}}
    assert refusal(pod(limits={"cpu": "3"}, requests={"cpu": "1"}), [ratio]) == ""
    told = "cpu max limit to request ratio per Container is 3, but "
    assert refusal(pod(limits={"cpu": "1"}, requests={"cpu": "300m"}), [ratio]) == f"{told}provided ratio is 3.333333"
    assert refusal(pod(limits={"cpu": "1"}), [ratio]) == f"{told}no request is specified or request is 0"


def test_claims_have_bounds_too():
    bounds = {
        "spec": {"limits": [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}]}
    }
    for size, told in [
        ("5Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi"),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
        ("1Gi", ""),
    ]:
        assert claim_refusal({"spec": {"resources": {"requests": {"storage": size}}}}, [bounds]) == told
