"""What built-in kinds refuse, and with which causes: each line holds on the embedded and on the real server."""

import json

import pytest

POD = {"containers": [{"name": "c", "image": "i:1"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
ONCE = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
CRON = {"schedule": "@daily", "jobTemplate": {"spec": ONCE}}
SCALED = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
KINDS = {
    "deployments": ("apps/v1", {"spec": SELECTED}),
    "replicasets": ("apps/v1", {"spec": SELECTED}),
    "daemonsets": ("apps/v1", {"spec": SELECTED}),
    "statefulsets": ("apps/v1", {"spec": {**SELECTED, "serviceName": "s"}}),
    "controllerrevisions": ("apps/v1", {"revision": 1, "data": {}}),
    "jobs": ("batch/v1", {"spec": ONCE}),
    "cronjobs": ("batch/v1", {"spec": CRON}),
    "horizontalpodautoscalers": ("autoscaling/v2", {"spec": SCALED}),
    "replicationcontrollers": ("v1", {"spec": {"selector": {"app": "a"}, "template": TEMPLATE}}),
    "podtemplates": ("v1", {"template": TEMPLATE}),
    "persistentvolumeclaims": ("v1", {"spec": CLAIM}),
    "persistentvolumes": ("v1", {"spec": VOLUME}),
    "resourcequotas": ("v1", {"spec": {"hard": {"pods": "3"}}}),
    "limitranges": ("v1", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
    "storageclasses": ("storage.k8s.io/v1", {"provisioner": "example.com/p"}),
    "csidrivers": ("storage.k8s.io/v1", {"spec": {}}),
    "runtimeclasses": ("node.k8s.io/v1", {"handler": "h"}),
    "ingressclasses": ("networking.k8s.io/v1", {"spec": {"controller": "example.com/c"}}),
}
GLOBAL = ("persistentvolumes", "storageclasses", "csidrivers", "runtimeclasses", "ingressclasses")
REQUIRED, INVALID, UNKNOWN, FORBIDDEN = (
    f"FieldValue{word}" for word in ("Required", "Invalid", "NotSupported", "Forbidden")
)


def spec(**fields):
    return {"spec": fields}


def policies(**scaling):
    return spec(behavior={"scaleUp": scaling})


CREATED = [  # what is merged into a good object, and the causes
    ("deployments", spec(minReadySeconds=-1), [(INVALID, "spec.minReadySeconds")]),
    ("deployments", spec(minReadySeconds=600), [(INVALID, "spec.progressDeadlineSeconds")]),
    ("deployments", spec(strategy={"type": "X"}), [(UNKNOWN, "spec.strategy")]),
    (
        "deployments",
        spec(selector={"matchLabels": {"app": "a b"}}),
        [(INVALID, "spec.selector.matchLabels"), (INVALID, "spec.selector")],
    ),
    (
        "replicasets",
        spec(template={"spec": {"restartPolicy": "X"}}),
        [(UNKNOWN, "spec.template.spec.restartPolicy")] * 2,
    ),
    (
        "daemonsets",
        spec(updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
        [(INVALID, "spec.updateStrategy.rollingUpdate.maxSurge")],
    ),
    (
        "daemonsets",
        spec(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
        [(REQUIRED, "spec.updateStrategy.rollingUpdate.maxUnavailable")],
    ),
    ("statefulsets", spec(podManagementPolicy="X"), [(INVALID, "spec.podManagementPolicy")]),
    ("statefulsets", spec(ordinals={"start": -1}), [(INVALID, "spec.ordinals.start")]),
    ("controllerrevisions", {"revision": -1}, [(INVALID, "revision")]),
    ("jobs", spec(completionMode="Indexed", completions=None, parallelism=1), [(REQUIRED, "spec.completions")]),
    ("jobs", spec(backoffLimitPerIndex=1), [(INVALID, "spec.backoffLimitPerIndex")]),
    (
        "jobs",
        spec(manualSelector=True),
        [(REQUIRED, "spec.selector"), (INVALID, "spec.template.metadata.labels")],
    ),
    ("jobs", spec(podReplacementPolicy="X"), [(UNKNOWN, "spec.podReplacementPolicy")]),
    ("cronjobs", spec(schedule="60 * * * *"), [(INVALID, "spec.schedule")]),
    ("cronjobs", spec(schedule="TZ=UTC 0 * * * *"), [(INVALID, "spec.schedule")]),
    ("cronjobs", spec(timeZone="Nowhere/None"), [(INVALID, "spec.timeZone")]),
    ("cronjobs", spec(concurrencyPolicy="X"), [(UNKNOWN, "spec.concurrencyPolicy")]),
    ("cronjobs", {"metadata": {"name": "n" * 53}}, [(INVALID, "metadata.name")]),
    ("horizontalpodautoscalers", spec(minReplicas=5), [(INVALID, "spec.maxReplicas")]),
    ("horizontalpodautoscalers", spec(metrics=[{"type": "Resource"}]), [(REQUIRED, "spec.metrics[0].resource")]),
    (
        "horizontalpodautoscalers",
        policies(policies=[{"type": "Pods", "value": 0, "periodSeconds": 1801}]),
        [
            (INVALID, "spec.behavior.scaleUp.policies[0].value"),
            (INVALID, "spec.behavior.scaleUp.policies[0].periodSeconds"),
        ],
    ),
    ("replicationcontrollers", spec(selector={"app": "b"}), [(INVALID, "spec.template.metadata.labels")]),
    ("podtemplates", {"template": None}, [(REQUIRED, "template.spec.containers")]),
    ("persistentvolumeclaims", spec(accessModes=["X"]), [(UNKNOWN, "spec.accessModes")]),
    ("persistentvolumeclaims", spec(resources={"requests": {"storage": "0"}}), [(INVALID, "spec.resources[storage]")]),
    ("persistentvolumes", spec(hostPath=None), [(REQUIRED, "spec")]),
    ("persistentvolumes", spec(capacity=None), [(REQUIRED, "spec.capacity"), (UNKNOWN, "spec.capacity")]),
    ("resourcequotas", spec(hard={"x": "1"}), [(INVALID, "spec.hard[x]")] * 2),
    ("resourcequotas", spec(scopes=["X"]), [(INVALID, "spec.scopes")]),
    (
        "limitranges",
        spec(limits=[{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]),
        [
            (INVALID, "spec.limits[0].min[cpu]"),
            (INVALID, "spec.limits[0].defaultRequest[cpu]"),
            (INVALID, "spec.limits[0].default[cpu]"),
        ],
    ),
    ("storageclasses", {"reclaimPolicy": "Recycle"}, [(UNKNOWN, "reclaimPolicy")]),
    ("csidrivers", spec(fsGroupPolicy="X"), [(UNKNOWN, "spec.fsGroupPolicy")]),
    ("runtimeclasses", {"handler": ""}, [(REQUIRED, "handler")]),
    (
        "ingressclasses",
        spec(parameters={"kind": "K", "name": "n", "scope": "Namespace"}),
        [(REQUIRED, "spec.parameters.namespace")],
    ),
]
NOTHING = {"spec": None}
UPDATED = [
    (
        "daemonsets",
        spec(selector={"matchLabels": {"app": "b"}}),
        [(INVALID, "spec.selector"), (INVALID, "spec.template.metadata.labels")],
    ),
    ("statefulsets", spec(updateStrategy={"type": "OnDelete"}), [(INVALID, "spec.updateStrategy.rollingUpdate")]),
    ("jobs", spec(parallelism=-1), [(INVALID, "spec.parallelism")] * 2),
    ("jobs", spec(managedBy="example.com/m"), [(INVALID, "spec.managedBy")]),
    (
        "jobs",
        spec(selector=None),
        [(REQUIRED, "spec.selector"), (INVALID, "spec.template.metadata.labels")] * 2 + [(INVALID, "spec.selector")],
    ),
    (
        "cronjobs",
        NOTHING,
        [
            (REQUIRED, "spec.schedule"),
            (REQUIRED, "spec.jobTemplate.spec.template.spec.containers"),
            (REQUIRED, "spec.jobTemplate.spec.template.spec.restartPolicy"),
        ],
    ),
    (
        "horizontalpodautoscalers",
        NOTHING,
        [
            (REQUIRED, "spec.maxReplicas"),
            (INVALID, "spec.maxReplicas"),
            (REQUIRED, "spec.scaleTargetRef.kind"),
            (REQUIRED, "spec.scaleTargetRef.name"),
            (INVALID, "spec.scaleTargetRef.apiVersion"),
        ],
    ),
    ("replicationcontrollers", NOTHING, [(REQUIRED, "spec.selector"), (REQUIRED, "spec.template")]),
    (
        "persistentvolumeclaims",
        NOTHING,
        [
            (REQUIRED, "spec.accessModes"),
            (REQUIRED, "spec.resources[storage]"),
            (FORBIDDEN, "spec"),
            (FORBIDDEN, "spec.resources.requests.storage"),
        ],
    ),
    ("persistentvolumeclaims", spec(volumeMode="Block"), [(FORBIDDEN, "spec"), (INVALID, "volumeMode")]),
    ("persistentvolumes", spec(hostPath={"path": "/y"}), [(FORBIDDEN, "spec.persistentvolumesource")]),
    ("resourcequotas", spec(scopes=["BestEffort"]), [(INVALID, "spec.scopes")]),
    ("storageclasses", {"provisioner": None}, [(REQUIRED, "provisioner"), (INVALID, "provisioner")]),
    ("csidrivers", spec(attachRequired=False), [(INVALID, "spec.attachedRequired")]),
    ("runtimeclasses", {"handler": "i"}, [(INVALID, "handler")]),
    ("ingressclasses", NOTHING, [(INVALID, "spec.controller"), (REQUIRED, "spec.controller")]),
]


def merged(obj, change):
    made = dict(obj)
    for key, value in change.items():
        made[key] = merged(obj.get(key) or {}, value) if isinstance(value, dict) else value
    return made


def collection(api, plural):
    version, _ = KINDS[plural]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/{plural}" if plural in GLOBAL else f"{root}/namespaces/{api.namespace}/{plural}"


async def ask(api, method, path, body, kind="application/json", **query):
    headers, data = {"Content-Type": kind}, json.dumps(body).encode()
    answer = await api.transport().request(method, path, query=query, headers=headers, body=data)
    return answer.status, json.loads(answer.body)


def causes(body):
    return [(cause["reason"], cause["field"]) for cause in body["details"]["causes"]]


async def test_an_object_that_cannot_be_is_refused_on_create(api):
    for plural, change, wanted in CREATED:
        name = f"{api.namespace}-{plural[:20]}"
        obj = merged({"metadata": {"name": name}, **KINDS[plural][1]}, change)
        code, body = await ask(api, "POST", collection(api, plural), obj, dryRun="All")
        assert (plural, code, change) == (plural, 422, change), body
        assert (plural, change, causes(body)) == (plural, change, wanted)


@pytest.mark.parametrize("plural", sorted({plural for plural, _, _ in UPDATED}))
async def test_what_may_not_change_is_refused_on_update(api, plural):
    path, name = collection(api, plural), f"{api.namespace}-{plural[:20]}"
    code, body = await ask(api, "POST", path, {"metadata": {"name": name}, **KINDS[plural][1]})
    assert code == 201, body
    try:
        for change, wanted in [(change, wanted) for kind, change, wanted in UPDATED if kind == plural]:
            code, body = await ask(api, "PATCH", f"{path}/{name}", change, "application/merge-patch+json")
            assert (change, code) == (change, 422), body
            assert (change, causes(body)) == (change, wanted)
    finally:
        await ask(api, "DELETE", f"{path}/{name}", {})
