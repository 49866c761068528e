"""Tests of warnings about repeated items of a pod."""

from fairlead.server.registry.validation import pod_warnings


def pod(**container):
    return {"metadata": {"generation": 1}, "spec": {"containers": [container]}}


def test_warns_of_a_variable_that_hides_another_and_does_not_use_it():
    env = [{"name": "X", "value": "1"}, {"name": "X", "value": "$(X)2"}, {"name": "X", "value": "3"}]
    assert pod_warnings.find_pod_warnings(pod(env=env), None) == [
        'spec.containers[0].env[2]: hides previous definition of "X", which may be dropped when using apply'
    ]


def test_warns_of_duplicate_and_overlapping_ports():
    ports = [
        {"containerPort": 80, "protocol": "TCP", "name": "a"},
        {"containerPort": 80, "protocol": "TCP", "name": "a"},
    ]
    ending = "services and probes that select ports by name will use"
    first, second = "spec.containers[0].ports[0]", "spec.containers[0].ports[1]"
    assert pod_warnings.find_pod_warnings(pod(ports=ports), None) == [
        f"{second}: duplicate port definition with {first}",
        f'{second}: duplicate port name "a" with {first}, {ending} {first}',
    ]
    ports = [{"containerPort": 80, "protocol": "TCP", "hostPort": 1}, {"containerPort": 80, "protocol": "TCP"}]
    assert pod_warnings.find_pod_warnings(pod(ports=ports), None) == [
        f"{second}: overlapping port definition with {first}"
    ]


def test_template_is_checked_only_if_the_generation_changed():
    env = [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]
    new = {"metadata": {"generation": 2}, "spec": {"template": pod(env=env)}}
    warn = pod_warnings.build_template_warner("spec", "template")
    assert len(warn(new, None)) == len(warn(new, {"metadata": {"generation": 1}})) == 1
    assert warn(new, new) == []
