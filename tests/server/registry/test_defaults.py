"""Tests of the fields that a server sets on create. Both servers must agree with each row of the tables."""

from .objects import CLAIM, POD, claim_template, collection_path, container, new_object, pod_template, send, spec

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
STRATEGY = ("spec", "updateStrategy", "rollingUpdate")
CLAIM_SOURCE = {"kind": "PersistentVolumeClaim", "name": "x"}
OTHER_SOURCE = {"apiGroup": "example.com", "kind": "K", "name": "n"}
SINGLE_STACK = {"clusterIP": "None", "selector": None, "ipFamilyPolicy": "SingleStack"}
CONTAINER = ("spec", "template", "spec", "containers", 0)
HOST_NETWORK = {"containers": [{**POD["containers"][0], "ports": [{"containerPort": 80}]}], "hostNetwork": True}
PORT = {"containerPort": 80, "protocol": "TCP"}
IMAGE_VOLUME = {"name": "v", "image": {"reference": "i"}}
AZURE_DISK = {"diskName": "d", "diskURI": "https://blob.core.windows.net/d"}
AZURE_DEFAULTS = {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}
DEFAULTED = [  # plural, a change of its valid object, a path, and the value there
    ("statefulsets", claim_template(CLAIM), (*CONTAINER, "volumeMounts", 0, "name"), "v"),
    ("statefulsets", pod_template(hostname="A_b"), ("spec", "template", "spec", "hostname"), "A_b"),
    ("deployments", pod_template(**HOST_NETWORK), (*CONTAINER, "ports"), [PORT]),
    ("pods", spec(**HOST_NETWORK), ("spec", "containers", 0, "ports"), [{**PORT, "hostPort": 80}]),
    ("pods", spec(volumes=[IMAGE_VOLUME]), ("spec", "volumes", 0, "image", "pullPolicy"), "Always"),
    (
        "persistentvolumes",
        spec(hostPath=None, azureDisk=AZURE_DISK),
        ("spec", "azureDisk"),
        AZURE_DISK | AZURE_DEFAULTS,
    ),
    (
        "persistentvolumes",
        spec(claimRef={"name": "c"}),
        ("metadata", "managedFields", 0, "fieldsV1", "f:spec", "f:claimRef"),
        {".": {}, "f:name": {}},
    ),
    ("services", spec(**SINGLE_STACK), ("spec", "ipFamilies"), ["IPv4"]),
    ("nodes", spec(podCIDR="10.0.0.0/24", podCIDRs=["10.1.0.0/24"]), ("spec", "podCIDRs"), ["10.0.0.0/24"]),
    ("nodes", spec(configSource={}), ("spec", "configSource"), None),
    ("nodes", {"status": {"capacity": {"cpu": "4"}}}, ("status", "allocatable"), {"cpu": "4"}),
    (
        "nodes",
        {"status": {"capacity": {"cpu": "4", "pods": "9"}, "allocatable": {"cpu": "3"}}},
        ("status", "allocatable"),
        {"cpu": "3"},
    ),
    ("certificatesigningrequests", spec(username="me", extra={"a": ["b"]}), ("spec", "extra"), None),
    ("certificatesigningrequests", {}, ("metadata", "managedFields"), None),
    (
        "daemonsets",
        {"metadata": {"annotations": {TEMPLATE_GENERATION: "5"}}},
        ("metadata", "annotations", TEMPLATE_GENERATION),
        "5",
    ),
    ("statefulsets", spec(updateStrategy={"rollingUpdate": {"maxUnavailable": 1}}), STRATEGY, {"partition": 0}),
    ("services", spec(externalIPs=["1.2.3.4"]), ("spec", "externalTrafficPolicy"), "Cluster"),
    ("pods", spec(resources={"limits": {"cpu": "1"}}), ("spec", "resources", "requests"), {"cpu": "1"}),
    ("pods", spec(resources={"limits": {"cpu": "1"}}), ("status", "qosClass"), "Burstable"),
    ("pods", container(image="Odd"), ("spec", "containers", 0, "imagePullPolicy"), "IfNotPresent"),
    ("pods", spec(schedulingGates=[{"name": "a.b/c"}]), ("status", "conditions", 0, "reason"), "SchedulingGated"),
    (
        "persistentvolumeclaims",
        spec(dataSourceRef=CLAIM_SOURCE),
        ("spec", "dataSource"),
        {"apiGroup": None, **CLAIM_SOURCE},
    ),
    ("persistentvolumeclaims", spec(dataSource={"kind": "X", "name": "y"}), ("spec", "dataSource"), None),
    ("persistentvolumeclaims", spec(dataSourceRef=OTHER_SOURCE), ("spec", "dataSource"), OTHER_SOURCE),
]


async def test_create_sets_defaults(api):
    for plural, change, path, expected in DEFAULTED:
        code, value = await send(
            api, "POST", collection_path(api, plural), new_object(plural, "x", change), dryRun="All"
        )
        assert code == 201, value
        for key in path:
            value = value[key] if isinstance(value, list) else value.get(key)
        assert (plural, change, value) == (plural, change, expected)


async def test_non_numeric_template_generation_returns_400(api):
    obj = new_object("daemonsets", "x", {"metadata": {"annotations": {TEMPLATE_GENERATION: "x"}}})
    code, body = await send(api, "POST", collection_path(api, "daemonsets"), obj, dryRun="All")
    assert (code, body["message"].rpartition(": strconv")[2]) == (400, '.ParseInt: parsing "x": invalid syntax')


async def test_generated_namespace_name_becomes_its_label(api):
    code, body = await send(api, "POST", "/api/v1/namespaces", {"metadata": {"generateName": "gen-"}}, dryRun="All")
    assert (code, body["metadata"]["labels"]) == (201, {"kubernetes.io/metadata.name": body["metadata"]["name"]})
