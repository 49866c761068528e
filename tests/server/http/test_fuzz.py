"""Tests that corrupted requests never cause an internal error.

The requests are the same on every machine. FAIRLEAD_FUZZ_SECONDS makes the test run longer, FAIRLEAD_FUZZ_SEED changes
the seed (0). A failure names the request.
"""

import json
import os
import random
import re
import time

from fairlead.server.app import Server
from fairlead.server.http.messages import Request, StreamingResponse

SECONDS = float(os.environ.get("FAIRLEAD_FUZZ_SECONDS", "0"))
REQUESTS = 3_000
SEED = int(os.environ.get("FAIRLEAD_FUZZ_SEED", "0"))
LONG = 2.0  # seconds of processor time that no such request may take
POD = {
    "containers": [
        {
            "name": "c",
            "image": "i",
            "env": [{"name": "E", "value": "1"}],
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
        }
    ],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    "tolerations": [{"key": "k", "operator": "Exists"}],
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SPEC = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}, "l": {
    "type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}, "f": {
    "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}  # fmt: skip
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "knobs.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "knobs", "kind": "Knob"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                },
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": {**SPEC}}},
                },
            }
        ],
    },
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
OBJECTS = {
    "/api/v1/namespaces/default/configmaps": ("v1", "ConfigMap", {"data": {"k": "v"}, "binaryData": {"b": "YQ=="}}),
    "/api/v1/namespaces/default/secrets": ("v1", "Secret", {"type": "Opaque", "data": {"k": "YQ=="}}),
    "/api/v1/namespaces/default/pods": ("v1", "Pod", {"spec": POD}),
    "/api/v1/namespaces/default/services": ("v1", "Service", {"spec": {"ports": [{"port": 80, "targetPort": "x"}]}}),
    "/apis/apps/v1/namespaces/default/deployments": (
        "apps/v1",
        "Deployment",
        {"spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
    ),
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles": (
        "rbac.authorization.k8s.io/v1",
        "Role",
        {"rules": RULES},
    ),
    "/apis/example.com/v1/namespaces/default/knobs": (
        "example.com/v1",
        "Knob",
        {"spec": {"n": 1, "l": [{"k": "a"}], "f": {"x": [1]}}},
    ),
    DEFINITIONS: ("apiextensions.k8s.io/v1", DEFINITION["kind"], {
        "spec": json.loads(json.dumps(DEFINITION["spec"]).replace("nob", "nab"))}),
}  # fmt: skip
WRONG = [
    None, True, 0, -1, 1.5, 10**30, 1e300, "", "x", "..", "\0", "é\u2028", "9" * 5000, "2026-01-01T00:00:00Z", "1Gi",
    [], {}, [None], [[]], [1], ["x"], [{}], {"": None}, {"$patch": "delete"}, {"$patch": 1}, {"k": {"k": {}}},
    {"$retainKeys": ["x"]},
]  # fmt: skip
KEYS = ["", "x", "$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers",
        "metadata", "finalizers", "ownerReferences", "managedFields", "labels", "spec", "status", "kind"]  # fmt: skip
PATCHES = ["application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"]
FAULT = re.compile(rb"Internal error occurred: [A-Z]\w*(Error|Exception): ")  # an exception's name
OPERATIONS = ["add", "remove", "replace", "move", "copy", "test", "nope", 1]


def corrupt(value, rng):
    """Return the value with one part corrupted."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        return rng.choice(WRONG)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return [*value, rng.choice([*value, *WRONG])]
        return [corrupt(item, rng) if index == at else item for index, item in enumerate(value)]
    if rng.random() < 0.2:
        return {**value, rng.choice(KEYS): rng.choice(WRONG)}
    key = rng.choice(list(value))
    return {**value, key: corrupt(value[key], rng)}


def pointers(value, path=""):
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield from pointers(inner, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")


def random_request(path, obj, rng):
    """Return a request that is mostly valid."""
    document = corrupt(obj, rng)
    if rng.random() < 0.3:
        document = corrupt(document, rng)
    target = path + rng.choice(["/a", "/a", "/a", "/a/status", "/a/scale", "/b"])
    query = rng.choice([{}, {}, {"dryRun": ["All"]}, {"fieldValidation": ["Strict"]}, {"force": ["true"]}])
    kind = rng.choice(["POST", "PUT", "JSON", "PATCH", "PATCH", "PATCH"])
    if kind == "POST":
        return "POST", path, query, "application/json", document
    if kind == "PUT":
        return "PUT", target, query, rng.choice(["application/json", "application/yaml"]), document
    if kind == "JSON":
        pointers_in_object = [*pointers(obj), "/metadata/finalizers/-", "x", "/~", "/a/b/c"]
        operations = []
        for _ in range(rng.randrange(1, 4)):
            item = {"op": rng.choice(OPERATIONS), "path": rng.choice(pointers_in_object)}
            operations.append({**item, "from": rng.choice(pointers_in_object), "value": rng.choice(WRONG)})
        return "PATCH", target, query, "application/json-patch+json", operations
    return "PATCH", target, {**query, "fieldManager": [rng.choice("mn")]}, rng.choice(PATCHES), document


def test_a_corrupted_request_never_causes_an_internal_error():
    rng = random.Random(SEED)
    server = Server()
    end, request_count = time.monotonic() + SECONDS, 0
    while request_count < REQUESTS or time.monotonic() < end:
        if request_count % 50 == 0:
            send(server, "POST", DEFINITIONS, {}, "application/json", DEFINITION)
        path = rng.choice(list(OBJECTS))
        api_version, kind, remainder = OBJECTS[path]
        name = "knabs.example.com" if kind == DEFINITION["kind"] else "a"
        obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": {"l": "m"}}, **remainder}
        send(server, "POST", path, {}, "application/json", obj)
        request = random_request(path, obj, rng)
        start = time.process_time()
        response = send(server, *request)
        cpu_seconds = time.process_time() - start
        request_count += 1
        failure = (SEED, request_count, request)
        assert not isinstance(response, StreamingResponse)
        assert not FAULT.search(response.body), (failure, response.body)
        assert cpu_seconds < LONG, (failure, cpu_seconds)
        if request_count % 50 == 0:
            assert send(server, "GET", "/api/v1/namespaces", {}, "application/json", None).status == 200
            send(server, "DELETE", path, {}, "application/json", None)


def send(server, method, path, query, kind, body):
    encoded_body = b"" if body is None else json.dumps(body).encode()
    return server.respond(Request(method, path, query, {"content-type": kind, "user-agent": "test"}, encoded_body))
