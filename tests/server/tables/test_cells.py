"""Tests of the Table cells of built-in kinds, on both servers."""

import json

import pytest

from fairlead.api.requests import HttpRequest

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PODS, JOBS = "/api/v1/namespaces/{ns}/pods", "/apis/batch/v1/namespaces/{ns}/jobs"
ONCE = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
THEN = "2020-01-01T00:00:00Z"
RUNNING = {"running": {"startedAt": THEN}}
VOLUME = {"accessModes": ["ReadWriteMany", "ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
NO_RULE = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nones"], "operations": ["CREATE"]}
HOOK = {
    "name": "w.example.com",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://127.0.0.1:1/none"},
    "rules": [NO_RULE],
}
POLICY = {"matchConstraints": {"resourceRules": [NO_RULE]}, "validations": [{"expression": "true"}]}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
KUBELET = {
    **dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeProxyVersion"), ""),
    "architecture": "amd64",
    "containerRuntimeVersion": "containerd://2",
    "kernelVersion": "6.1",
    "kubeletVersion": "v1.36.4",
    "operatingSystem": "linux",
    "osImage": "Linux",
}


def pod(starting=0, staying=0):
    begin = [{"name": f"i{n}", "image": "i"} for n in range(starting)]
    begin += [{"name": f"s{n}", "image": "i", "restartPolicy": "Always"} for n in range(staying)]
    containers = [{"name": f"c{n}", "image": "i"} for n in range(2)]
    return {"spec": {"containers": containers, **({"initContainers": begin} if begin else {})}}


def container(name, state, *, ready=False, restarts=0, started=None):
    status = {"name": name, "image": "i", "imageID": "", "ready": ready, "restartCount": restarts, "state": state}
    return status if started is None else {**status, "started": started}


def ended(code, **extra_fields):
    return {"terminated": {"exitCode": code, **extra_fields}}


def waiting(reason):
    return {"waiting": {"reason": reason}}


def two_containers(first, second, phase="Running", **status):
    return {"phase": phase, "containerStatuses": [container("c0", **first), container("c1", **second)], **status}


def before(*states, phase="Pending", **status):
    names = ("i0", "i1", "s0")
    listed = [container(name, **state) for name, state in zip(names, states, strict=False)]
    return {"phase": phase, "initContainerStatuses": listed, **status}


UP, DONE = {"state": RUNNING, "ready": True}, {"state": ended(0, reason="Completed")}
CRASHING, LOST = {"state": waiting("CrashLoopBackOff"), "restarts": 3}, {"state": ended(137, signal=9)}
ASIDE = {"state": RUNNING, "ready": True, "restarts": 2, "started": True}
READY = [{"type": "Ready", "status": "True"}]
POD_ROWS = [  # the Pod, its status, and what is ready, what it does and its restarts
    (pod(), {}, ["0/2", "Pending", "0"]),
    (pod(), two_containers(UP, UP), ["2/2", "Running", "0"]),
    (pod(), two_containers(UP, CRASHING), ["1/2", "CrashLoopBackOff", "3"]),
    (pod(), two_containers(UP, DONE), ["1/2", "NotReady", "0"]),
    (pod(), two_containers(UP, DONE, conditions=READY), ["1/2", "Running", "0"]),
    (pod(), two_containers(DONE, {"state": ended(1)}), ["0/2", "ExitCode:1", "0"]),
    (pod(), two_containers(LOST, LOST), ["0/2", "Signal:9", "0"]),
    (pod(), two_containers(DONE, DONE, "Succeeded"), ["0/2", "Completed", "0"]),
    (pod(), {"phase": "Failed", "reason": "Evicted"}, ["0/2", "Evicted", "0"]),
    (pod(2), before({"state": RUNNING}, {"state": waiting("PodInitializing")}), ["0/2", "Init:0/2", "0"]),
    (pod(2), before(DONE, CRASHING), ["0/2", "Init:CrashLoopBackOff", "3"]),
    (pod(2), before(DONE, {"state": ended(3)}), ["0/2", "Init:ExitCode:3", "0"]),
    (pod(2, 1), before(DONE, DONE, ASIDE), ["1/3", "Pending", "2"]),
    (pod(2, 1), before(DONE, DONE, ASIDE, **two_containers(UP, UP)), ["3/3", "Running", "2"]),
]


def scaled(*metrics):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {"spec": {"maxReplicas": 3, "scaleTargetRef": target, "metrics": list(metrics)}}


def metric(kind, target, **extra_fields):
    return {"type": kind[0].upper() + kind[1:], kind: {**extra_fields, "target": target}}


def now(kind, current, **extra_fields):
    return {"type": kind[0].upper() + kind[1:], kind: {**extra_fields, "current": current}}


AVERAGE = {"type": "AverageValue", "averageValue": "10"}
CPU = metric("resource", {"type": "Utilization", "averageUtilization": 50}, name="cpu")
QUEUE = {"metric": {"name": "q"}}
SCALERS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
ROWS = [  # where, the object, its status, and some cells
    (JOBS, {"spec": ONCE}, {"conditions": [{"type": "FailureTarget", "status": "True"}]}, {"Status": "FailureTarget"}),
    (
        SCALERS,
        scaled(CPU, metric("external", AVERAGE, **QUEUE), metric("pods", AVERAGE, **QUEUE)),
        {
            "currentReplicas": 1,
            "desiredReplicas": 1,
            "currentMetrics": [now("resource", {"averageUtilization": 7}, name="cpu")],
        },
        {"Targets": "cpu: 7%/50%, <unknown>/10 (avg) + 1 more..."},
    ),
    (SCALERS, scaled(metric("pods", AVERAGE, **QUEUE)), {}, {"Targets": "<unknown>/10"}),
    (
        INGRESSES,
        {"spec": {"rules": [{"host": host} for host in ("a.b", "b.c", "c.d", "d.e")]}},
        {"loadBalancer": {"ingress": [{"hostname": "z.y"}, {"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]}},
        {"Hosts": "a.b,b.c,c.d + 1 more...", "Address": "1.2.3.4,z.y"},
    ),
    (
        "/api/v1/nodes",
        {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}, "spec": {"unschedulable": True}},
        {"conditions": READY, "nodeInfo": KUBELET, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
        {
            "Status": "Ready,SchedulingDisabled",
            "Roles": "control-plane",
            "Version": "v1.36.4",
            "Internal-IP": "10.0.0.1",
            "External-IP": "<none>",
            "Kernel-Version": "6.1 (amd64)",
        },
    ),
    (
        "/api/v1/persistentvolumes",
        {"spec": {**VOLUME, "claimRef": {"namespace": "n", "name": "c"}, "storageClassName": "fast"}},
        {"phase": "Bound"},
        {"Capacity": "1Gi", "Access Modes": "RWO,RWX", "Status": "Bound", "Claim": "n/c", "StorageClass": "fast"},
    ),
    (
        "/apis/storage.k8s.io/v1/csidrivers",
        {"spec": {"attachRequired": False}},
        None,
        {"AttachRequired": False, "TokenRequests": "<unset>", "Modes": "Persistent"},
    ),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}, None, {"Handler": "h"}),
    (
        "/apis/networking.k8s.io/v1/ingressclasses",
        {"spec": {"controller": "a.b/c", "parameters": {"apiGroup": "x.y", "kind": "K", "name": "n"}}},
        None,
        {"Controller": "a.b/c", "Parameters": "K.x.y/n"},
    ),
    (f"{POLICIES}/validatingwebhookconfigurations", {"webhooks": [HOOK]}, None, {"Webhooks": 1}),
    (f"{POLICIES}/validatingadmissionpolicies", {"spec": POLICY}, None, {"Validations": 1, "ParamKind": "<unset>"}),
    (
        f"{POLICIES}/validatingadmissionpolicybindings",
        {
            "spec": {
                "policyName": "p",
                "validationActions": ["Deny"],
                "paramRef": {"name": "n", "parameterNotFoundAction": "Deny"},
            }
        },
        None,
        {"PolicyName": "p", "ParamRef": "*/n"},
    ),
]


async def ask(api, method, path, body=None, kind="application/json", accept="application/json"):
    headers = {"Content-Type": kind, "Accept": accept}
    response = await api.transport().request(
        HttpRequest(method, path, headers=headers, body=json.dumps(body or {}).encode())
    )
    assert response.status < 400, response.body
    return json.loads(response.body)


async def read_row(api, collection, name, obj, status):
    """Create an object with this status and return its Table row by column name."""
    metadata = {"name": name, **(obj.get("metadata") or {})}
    path = f"{collection}/{name}"
    await ask(api, "POST", collection, {**obj, "metadata": metadata})
    try:
        if status:
            await ask(api, "PATCH", f"{path}/status", {"status": status}, "application/merge-patch+json")
        table = await ask(api, "GET", path, accept=TABLE)
    finally:
        await ask(api, "DELETE", path, {"gracePeriodSeconds": 0})
    columns = [column["name"] for column in table["columnDefinitions"]]
    return table["rows"][0], dict(zip(columns, table["rows"][0]["cells"], strict=True))


async def test_the_status_cell_of_a_pod_summarizes_its_containers(api):
    for index, (obj, status, expected) in enumerate(POD_ROWS):
        row, cells = await read_row(api, PODS.format(ns=api.namespace), f"p{index}", obj, status)
        assert (status, [cells[key] for key in ("Ready", "Status", "Restarts")]) == (status, expected)
        over = [condition["reason"] for condition in row.get("conditions", ())]
        assert over == ([status["phase"]] if status.get("phase") in ("Succeeded", "Failed") else [])


@pytest.mark.parametrize("index", range(len(ROWS)))
async def test_the_cells_of_each_kind_match_a_real_server(api, index):
    path, obj, status, expected = ROWS[index]
    _, cells = await read_row(api, path.format(ns=api.namespace), f"cells-{api.namespace}", obj, status)
    assert {key: cells[key] for key in expected} == expected
