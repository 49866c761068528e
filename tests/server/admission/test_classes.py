"""Tests of the values that Pods, claims and Ingresses get from their classes."""

import asyncio
import json
import time

import pytest

from fairlead.api.requests import HttpRequest

PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
ROUTES = "/apis/networking.k8s.io/v1/ingressclasses"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
WITHIN = 30  # seconds until a real server's admission knows a class; a fraction of one is usual


def pod(**spec):
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


async def ask(api, method, path, body=None, **query):
    headers = {"Content-Type": "application/json"}
    response = await api.transport().request(
        HttpRequest(method, path, query=query, headers=headers, body=json.dumps(body or {}).encode())
    )
    return response.status, json.loads(response.body)


async def dry_run(api, body, expected=201):
    """Return the response to a dry run of a Pod, after admission has seen the class that the Pod names."""
    end = time.monotonic() + WITHIN
    while True:
        code, answer = await ask(api, "POST", f"/api/v1/namespaces/{api.namespace}/pods", body, dryRun="All")
        if code == expected or time.monotonic() > end:
            return code, answer.get("message") or answer["spec"]
        await asyncio.sleep(0.05)


async def test_pod_gets_its_priority_from_its_class(api):
    name = f"p-{api.namespace}"
    await ask(api, "POST", PRIORITIES, {"metadata": {"name": name}, "value": 7, "preemptionPolicy": "Never"})
    try:
        code, spec = await dry_run(api, pod(priorityClassName=name))
        assert (code, spec["priority"], spec["preemptionPolicy"]) == (201, 7, "Never")
        assert (await dry_run(api, pod(priorityClassName=name, priority=8), 403))[1] == (
            'pods "p" is forbidden: the integer value of priority (8) must not be provided in pod spec; '
            "priority admission controller computed 7 from the given PriorityClass name"
        )
    finally:
        await ask(api, "DELETE", f"{PRIORITIES}/{name}")
    code, spec = await dry_run(api, pod(priorityClassName="system-node-critical"))
    assert (code, spec["priority"]) == (201, 2000001000)
    code, spec = await dry_run(api, pod(preemptionPolicy="Never"), 403)
    assert (code, "computed PreemptLowerPriority" in spec) == (403, True)
    message_part = 'pods "p" is forbidden: no PriorityClass with name none was found'
    assert await dry_run(api, pod(priorityClassName="none"), 403) == (403, message_part)


async def test_pod_gets_its_scheduling_from_its_runtime_class(api):
    name = f"r-{api.namespace}"
    own = {"key": "a", "operator": "Exists"}
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [own]}
    overhead = {"podFixed": {"cpu": "100m"}}
    body = {"metadata": {"name": name}, "handler": "h", "scheduling": scheduling, "overhead": overhead}
    await ask(api, "POST", RUNTIMES, body)
    try:
        code, spec = await dry_run(api, pod(runtimeClassName=name, nodeSelector={"c": "d"}))
        assert (code, spec["nodeSelector"], spec["overhead"]) == (201, {"a": "b", "c": "d"}, {"cpu": "100m"})
        assert spec["tolerations"][-1] == own
        for invalid_fields, message_part in [
            ({"nodeSelector": {"a": "c"}}, "conflict: runtimeClass.scheduling.nodeSelector[a] = b"),
            ({"overhead": {"cpu": "1"}}, "Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
        ]:
            code, message = await dry_run(api, pod(runtimeClassName=name, **invalid_fields), 403)
            assert (code, message_part in message) == (403, True), message
    finally:
        await ask(api, "DELETE", f"{RUNTIMES}/{name}")
    message_part = 'pods "p" is forbidden: pod rejected: RuntimeClass "none" not found'
    assert await dry_run(api, pod(runtimeClassName="none"), 403) == (403, message_part)
    assert (await dry_run(api, pod(overhead={"cpu": "1"}), 403))[0] == 403


ALONE = pytest.mark.only("embedded", reason="a default is for everybody on a server")


@ALONE
async def test_object_without_a_class_gets_the_default_class(api):
    by_default = "is-default-class"
    for path, about in [
        (STORAGE, {"provisioner": "example.com/p", "metadata": {"name": "a"}}),
        (ROUTES, {"spec": {"controller": "example.com/c"}, "metadata": {"name": "a"}}),
    ]:
        resource_name = "storageclass" if path == STORAGE else "ingressclass"
        about["metadata"]["annotations"] = {f"{resource_name}.kubernetes.io/{by_default}": "true"}
        assert (await ask(api, "POST", path, about))[0] == 201
    claims = f"/api/v1/namespaces/{api.namespace}/persistentvolumeclaims"
    routes = f"/apis/networking.k8s.io/v1/namespaces/{api.namespace}/ingresses"
    for path, spec, key, expected in [
        (claims, CLAIM, "storageClassName", "a"),
        (claims, {**CLAIM, "storageClassName": ""}, "storageClassName", ""),
        (routes, {"defaultBackend": BACKEND}, "ingressClassName", "a"),
    ]:
        _, body = await ask(api, "POST", path, {"metadata": {"name": "x"}, "spec": spec}, dryRun="All")
        assert body["spec"].get(key) == expected


@ALONE
async def test_second_default_priority_class_is_rejected(api):
    body = {"metadata": {"name": "a"}, "value": 5, "globalDefault": True}
    assert (await ask(api, "POST", PRIORITIES, body))[0] == 201
    code, spec = await dry_run(api, pod())
    assert (code, spec["priority"], spec["priorityClassName"]) == (201, 5, "a")
    code, body = await ask(api, "POST", PRIORITIES, {**body, "metadata": {"name": "b"}})
    message_part = "PriorityClass a is already marked as default. Only one default can exist"
    assert (code, body["message"]) == (403, f'priorityclasses.scheduling.k8s.io "b" is forbidden: {message_part}')
