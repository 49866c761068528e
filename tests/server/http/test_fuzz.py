"""Valid requests, spoiled: whatever comes of them is told by the server, never a fault of it.

The same thousands on every machine; FAIRLEAD_FUZZ_SECONDS asks for longer, FAIRLEAD_FUZZ_SEED (0) from where on. A
failure names the request.
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


def spoiled(value, chance):
    """The value with one thing in it wrong."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.15:
        return chance.choice(WRONG)
    if isinstance(value, list):
        at = chance.randrange(len(value))
        if chance.random() < 0.2:
            return [*value, chance.choice([*value, *WRONG])]
        return [spoiled(one, chance) if index == at else one for index, one in enumerate(value)]
    if chance.random() < 0.2:
        return {**value, chance.choice(KEYS): chance.choice(WRONG)}
    key = chance.choice(list(value))
    return {**value, key: spoiled(value[key], chance)}


def pointers(value, path=""):
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield from pointers(inner, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")


def requested(path, obj, chance):
    """One request, most of it right."""
    whole = spoiled(obj, chance)
    if chance.random() < 0.3:
        whole = spoiled(whole, chance)
    place = path + chance.choice(["/a", "/a", "/a", "/a/status", "/a/scale", "/b"])
    query = chance.choice([{}, {}, {"dryRun": ["All"]}, {"fieldValidation": ["Strict"]}, {"force": ["true"]}])
    kind = chance.choice(["POST", "PUT", "JSON", "PATCH", "PATCH", "PATCH"])
    if kind == "POST":
        return "POST", path, query, "application/json", whole
    if kind == "PUT":
        return "PUT", place, query, chance.choice(["application/json", "application/yaml"]), whole
    if kind == "JSON":
        known = [*pointers(obj), "/metadata/finalizers/-", "x", "/~", "/a/b/c"]
        operations = []
        for _ in range(chance.randrange(1, 4)):
            one = {"op": chance.choice(OPERATIONS), "path": chance.choice(known)}
            operations.append({**one, "from": chance.choice(known), "value": chance.choice(WRONG)})
        return "PATCH", place, query, "application/json-patch+json", operations
    return "PATCH", place, {**query, "fieldManager": [chance.choice("mn")]}, chance.choice(PATCHES), whole


def test_no_spoiled_request_is_a_fault_of_the_server():
    chance = random.Random(SEED)
    server = Server()
    end, asked = time.monotonic() + SECONDS, 0
    while asked < REQUESTS or time.monotonic() < end:
        if asked % 50 == 0:
            send(server, "POST", DEFINITIONS, {}, "application/json", DEFINITION)
        path = chance.choice(list(OBJECTS))
        api_version, kind, rest = OBJECTS[path]
        name = "knabs.example.com" if kind == DEFINITION["kind"] else "a"
        obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": {"l": "m"}}, **rest}
        send(server, "POST", path, {}, "application/json", obj)
        request = requested(path, obj, chance)
        start = time.process_time()
        answer = send(server, *request)
        took = time.process_time() - start
        asked += 1
        told = (SEED, asked, request)
        assert not isinstance(answer, StreamingResponse)
        assert not FAULT.search(answer.body), (told, answer.body)
        assert took < LONG, (told, took)
        if asked % 50 == 0:
            assert send(server, "GET", "/api/v1/namespaces", {}, "application/json", None).status == 200
            send(server, "DELETE", path, {}, "application/json", None)


def send(server, method, path, query, kind, body):
    data = b"" if body is None else json.dumps(body).encode()
    return server.respond(Request(method, path, query, {"content-type": kind, "user-agent": "test"}, data))
