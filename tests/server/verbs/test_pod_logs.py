"""Logs of Pods without a kubelet. The same on both servers."""

import json

import pytest

from fairlead.api.requests import HttpRequest

CHOOSE = "a container name must be specified for pod p, choose one of: [i c d]"
CASES = [
    # containers, node, query, status code, message
    ("c", "", {}, 204, None),
    ("c", "", {"container": "c", "previous": "true"}, 204, None),
    ("c", "", {"container": "z"}, 400, "container z is not valid for pod p"),
    ("cd", "", {}, 400, CHOOSE),
    ("cd", "", {"container": "i"}, 204, None),
    ("c", "missing", {"container": "c"}, 404, 'pods "missing" not found'),
    ("c", "", {"tailLines": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    (
        "c",
        "",
        {"tailLines": "-1"},
        422,
        'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
    ),
    (
        "c",
        "",
        {"limitBytes": "0"},
        422,
        'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
    ),
]


@pytest.mark.parametrize(("containers", "node", "query", "status", "message"), CASES)
async def test_the_log_of_a_pod_that_does_not_run(api, containers, node, query, status, message):
    path, transport = f"/api/v1/namespaces/{api.namespace}/pods", api.transport()
    spec = {"containers": [{"name": name, "image": "i"} for name in containers]}
    if len(containers) > 1:
        spec["initContainers"] = [{"name": "i", "image": "i"}]
    if node:
        spec["nodeName"] = node
    body = json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode()
    created = await transport.request(
        HttpRequest("POST", path, headers={"Content-Type": "application/json"}, body=body)
    )
    assert created.status == 201, created.body
    response = await transport.request(HttpRequest("GET", f"{path}/p/log", query=query))
    assert response.status == status
    assert (json.loads(response.body)["message"] if response.body else None) == message


async def test_the_log_of_a_missing_pod_is_a_404(api):
    path = f"/api/v1/namespaces/{api.namespace}/pods/p/log"
    response = await api.transport().request(HttpRequest("GET", path))
    assert (response.status, json.loads(response.body)["message"]) == (404, 'pods "p" not found')
