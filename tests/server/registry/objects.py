"""Valid objects of built-in kinds, changes of them, and requests that use them."""

import json
from base64 import b64encode

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from fairlead.api.requests import HttpRequest

MERGE_PATCH = "application/merge-patch+json"
POD = {"containers": [{"name": "c", "image": "i:1"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
WORKLOAD = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
CRON_JOB = {"schedule": "@daily", "jobTemplate": {"spec": JOB}}
AUTOSCALER = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
RULE = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nones"], "operations": ["CREATE"]}
WEBHOOK = {
    "name": "w.example.com",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"service": {"name": "s", "namespace": "x"}},
    "rules": [RULE],
}
KEY = ec.generate_private_key(ec.SECP256R1())
REQUEST = x509.CertificateSigningRequestBuilder(x509.Name([])).sign(KEY, SHA256()).public_bytes(Encoding.PEM)
CERTIFICATE_REQUEST = {
    "request": b64encode(REQUEST).decode(),
    "signerName": "example.com/x",
    "usages": ["client auth"],
}
VALID = {  # plural: API version, and a valid object
    "deployments": ("apps/v1", {"spec": WORKLOAD}),
    "replicasets": ("apps/v1", {"spec": WORKLOAD}),
    "daemonsets": ("apps/v1", {"spec": WORKLOAD}),
    "statefulsets": ("apps/v1", {"spec": {**WORKLOAD, "serviceName": "s"}}),
    "controllerrevisions": ("apps/v1", {"revision": 1, "data": {}}),
    "jobs": ("batch/v1", {"spec": JOB}),
    "cronjobs": ("batch/v1", {"spec": CRON_JOB}),
    "horizontalpodautoscalers": ("autoscaling/v2", {"spec": AUTOSCALER}),
    "replicationcontrollers": ("v1", {"spec": {"selector": {"app": "a"}, "template": TEMPLATE}}),
    "pods": ("v1", {"spec": POD}),
    "services": ("v1", {"spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}}),
    "endpointslices": ("discovery.k8s.io/v1", {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]}),
    "ingresses": ("networking.k8s.io/v1", {"spec": {"defaultBackend": BACKEND}}),
    "networkpolicies": ("networking.k8s.io/v1", {"spec": {"podSelector": {}}}),
    "validatingwebhookconfigurations": ("admissionregistration.k8s.io/v1", {"webhooks": [WEBHOOK]}),
    "podtemplates": ("v1", {"template": TEMPLATE}),
    "persistentvolumeclaims": ("v1", {"spec": CLAIM}),
    "persistentvolumes": ("v1", {"spec": VOLUME}),
    "resourcequotas": ("v1", {"spec": {"hard": {"pods": "3"}}}),
    "limitranges": ("v1", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
    "storageclasses": ("storage.k8s.io/v1", {"provisioner": "example.com/p"}),
    "csidrivers": ("storage.k8s.io/v1", {"spec": {}}),
    "runtimeclasses": ("node.k8s.io/v1", {"handler": "h"}),
    "ingressclasses": ("networking.k8s.io/v1", {"spec": {"controller": "example.com/c"}}),
    "endpoints": ("v1", {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]}),
    "nodes": ("v1", {"spec": {}}),
    "certificatesigningrequests": ("certificates.k8s.io/v1", {"spec": CERTIFICATE_REQUEST}),
    "rolebindings": ("rbac.authorization.k8s.io/v1", {"roleRef": {"kind": "Role", "name": "r"}}),
    "clusterroles": ("rbac.authorization.k8s.io/v1", {}),
    "namespaces": ("v1", {}),
}
CLUSTER_SCOPED = (
    "persistentvolumes", "storageclasses", "csidrivers", "runtimeclasses", "ingressclasses",
    "validatingwebhookconfigurations", "nodes", "certificatesigningrequests", "clusterroles",
    "namespaces",
)  # fmt: skip


def spec(**fields):
    return {"spec": fields}


def container(**fields):
    """Return a change that sets fields of the Pod's container."""
    return spec(containers=[{**POD["containers"][0], **fields}])


def pod_template(**fields):
    """Return a change that sets fields of the template's pod spec."""
    return spec(template={"spec": {**POD, **fields}})


def claim_template(claim, mounted="v"):
    """Return a change that adds the claim template "v" to a StatefulSet, and mounts a volume."""
    containers = [{**POD["containers"][0], "volumeMounts": [{"name": mounted, "mountPath": "/x"}]}]
    claims = [{"metadata": {"name": "v"}, "spec": claim}]
    return spec(volumeClaimTemplates=claims, template={"spec": {"containers": containers}})


def merge(obj, change):
    result = dict(obj)
    for key, value in change.items():
        result[key] = merge(obj.get(key) or {}, value) if isinstance(value, dict) else value
    return result


def new_object(plural, name, change=None):
    return merge({"metadata": {"name": name}, **VALID[plural][1]}, change or {})


def collection_path(api, plural):
    version, _ = VALID[plural]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/{plural}" if plural in CLUSTER_SCOPED else f"{root}/namespaces/{api.namespace}/{plural}"


async def send(api, method, path, body, content_type="application/json", **query):
    headers, encoded_body = {"Content-Type": content_type}, json.dumps(body).encode()
    response = await api.transport().request(HttpRequest(method, path, query=query, headers=headers, body=encoded_body))
    return response.status, json.loads(response.body)


def field_errors(body):
    """Return the field errors of a Status as "Invalid spec.replicas"."""
    causes = body.get("details", {}).get("causes", ())
    return [f"{cause['reason'].removeprefix('FieldValue')} {cause['field']}" for cause in causes]
