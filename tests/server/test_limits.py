from fairlead.server.limits import ANNOTATION, limited, refusal

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
