"""What built-in kinds refuse, and with which causes: each line holds on the embedded and on the real server."""

import json
from base64 import b64encode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from fairlead.api.requests import HttpRequest

POD = {"containers": [{"name": "c", "image": "i:1"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
ONCE = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
CRON = {"schedule": "@daily", "jobTemplate": {"spec": ONCE}}
SCALED = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
NO_RULE = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nones"], "operations": ["CREATE"]}
HOOK = {
    "name": "w.example.com",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"service": {"name": "s", "namespace": "x"}},
    "rules": [NO_RULE],
}
KEY = ec.generate_private_key(ec.SECP256R1())
REQUEST = x509.CertificateSigningRequestBuilder(x509.Name([])).sign(KEY, SHA256()).public_bytes(Encoding.PEM)
CERTIFIED = {"request": b64encode(REQUEST).decode(), "signerName": "example.com/x", "usages": ["client auth"]}
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
    "pods": ("v1", {"spec": POD}),
    "services": ("v1", {"spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}}),
    "endpointslices": ("discovery.k8s.io/v1", {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]}),
    "ingresses": ("networking.k8s.io/v1", {"spec": {"defaultBackend": BACKEND}}),
    "networkpolicies": ("networking.k8s.io/v1", {"spec": {"podSelector": {}}}),
    "validatingwebhookconfigurations": ("admissionregistration.k8s.io/v1", {"webhooks": [HOOK]}),
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
    "certificatesigningrequests": ("certificates.k8s.io/v1", {"spec": CERTIFIED}),
    "rolebindings": ("rbac.authorization.k8s.io/v1", {"roleRef": {"kind": "Role", "name": "r"}}),
    "clusterroles": ("rbac.authorization.k8s.io/v1", {}),
    "namespaces": ("v1", {}),
}
GLOBAL = (
    "persistentvolumes", "storageclasses", "csidrivers", "runtimeclasses", "ingressclasses",
    "validatingwebhookconfigurations", "nodes", "certificatesigningrequests", "clusterroles",
    "namespaces",
)  # fmt: skip
REQUIRED, INVALID, UNKNOWN, FORBIDDEN = (
    f"FieldValue{word}" for word in ("Required", "Invalid", "NotSupported", "Forbidden")
)
MISSING = "FieldValueNotFound"


def spec(**fields):
    return {"spec": fields}


def policies(**scaling):
    return spec(behavior={"scaleUp": scaling})


def running(**fields):
    return spec(containers=[{**POD["containers"][0], **fields}])


def mounting(**mount):
    return {
        **running(volumeMounts=[mount]),
        "spec": {**running(volumeMounts=[mount])["spec"], "volumes": [{"name": "v"}]},
    }


def valued(**source):
    return running(env=[{"name": "A", "valueFrom": source}])


def volume(**source):
    return spec(volumes=[{"name": "v", **source}])


def affine(**affinity):
    return spec(affinity=affinity)


def indexed(**fields):
    return spec(completionMode="Indexed", completions=3, **fields)


def hooked(**fields):
    return {"webhooks": [{**HOOK, **fields}]}


C = "spec.containers[0]"
V = "spec.volumes[0]"
MOUNT, FROM, ENOUGH = f"{C}.volumeMounts", f"{C}.env[0].valueFrom", "spec.successPolicy.rules[0]"
LATER, SPREADS = "requiredDuringSchedulingIgnoredDuringExecution", "spec.topologySpreadConstraints"
PAIR = ("topologyKey", "whenUnsatisfiable")
SPREAD = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}
AVERAGE = {"type": "AverageValue", "averageValue": "1"}
SECURE = "pod-security.kubernetes.io/enforce"
GENERATION = "deprecated.daemonset.template.generation"
STRATEGY = ("spec", "updateStrategy", "rollingUpdate")
SOURCE = {"kind": "PersistentVolumeClaim", "name": "x"}
AT, ONE = "subsets[0].addresses[0]", "subsets[0].ports[0]"


def served(*ports, **address):
    return {"subsets": [{"addresses": [{"ip": "10.0.0.1", **address}], "ports": list(ports)}]}


def templated(**fields):
    return spec(template={"spec": {**POD, **fields}})


def claiming(claim, mounted="v"):
    """Changes that make Pods with a claim of their own, and mount one."""
    containers = [{**POD["containers"][0], "volumeMounts": [{"name": mounted, "mountPath": "/x"}]}]
    claims = [{"metadata": {"name": "v"}, "spec": claim}]
    return spec(volumeClaimTemplates=claims, template={"spec": {"containers": containers}})


UNCLAIMED = ("accessModes", "resources[storage]")
MOUNTS = "spec.template.spec.containers[0].volumeMounts"


def addressed(kind, given):
    return {"addressType": kind, "endpoints": [{"addresses": [given]}]}


CREATED = [  # what is merged into a good object, and the causes
    ("endpoints", {"subsets": [{}]}, [(REQUIRED, "subsets[0]")]),
    ("endpoints", served(ip="1.2.3"), [(INVALID, f"{AT}.ip")] * 2),
    ("endpoints", served(ip="fe80::1%eth0"), [(INVALID, f"{AT}.ip")] * 2),
    ("endpoints", served(ip="127.0.0.1"), [(INVALID, f"{AT}.ip")]),
    ("endpoints", served(ip="010.0.0.1"), [(INVALID, f"{AT}.ip")]),
    ("endpoints", served(ip="::ffff:1.2.3.4"), [(INVALID, f"{AT}.ip")]),
    ("endpoints", served(hostname="A", nodeName="B"), [(INVALID, f"{AT}.hostname"), (INVALID, f"{AT}.nodeName")]),
    (
        "endpoints",
        served({"port": 80}, {"port": 0, "name": "a"}),
        [(REQUIRED, f"{ONE}.name"), (INVALID, "subsets[0].ports[1].port")],
    ),
    ("endpoints", served({"port": 80, "protocol": "X"}), [(UNKNOWN, f"{ONE}.protocol")]),
    ("nodes", spec(taints=[{}]), [(INVALID, "metadata.taints[0].key")] * 2 + [(REQUIRED, "metadata.taints[0].effect")]),
    (
        "nodes",
        spec(taints=[{"key": "a", "value": "b c", "effect": "X"}]),
        [(INVALID, "metadata.taints[0].value"), (UNKNOWN, "metadata.taints[0].effect")],
    ),
    ("nodes", spec(taints=[{"key": "a", "effect": "NoExecute"}] * 2), [("FieldValueDuplicate", "metadata.taints[1]")]),
    ("nodes", spec(podCIDRs=["10.0.0.0/24", "10.1.0.0/24"]), [(INVALID, "spec.podCIDRs")]),
    ("nodes", spec(podCIDR="x"), [(INVALID, "spec.podCIDRs[0]")]),
    (
        "nodes",
        {"status": {"capacity": {"cpu": "-1"}}},
        [(INVALID, f"status.{held}.cpu") for held in ("capacity", "allocatable")],
    ),
    ("certificatesigningrequests", spec(request="eA=="), [(INVALID, "spec.request")]),
    (
        "certificatesigningrequests",
        spec(usages=["x", "any", "any"]),
        [(UNKNOWN, "spec.usages[0]"), ("FieldValueDuplicate", "spec.usages[2]")],
    ),
    ("certificatesigningrequests", spec(usages=None), [(REQUIRED, "spec.usages")]),
    ("certificatesigningrequests", spec(signerName="/x"), [(INVALID, "spec.signerName")] * 2),
    ("certificatesigningrequests", spec(signerName="kubernetes.io/legacy-unknown"), [(INVALID, "spec.signerName")]),
    ("certificatesigningrequests", spec(expirationSeconds=5), [(INVALID, "spec.expirationSeconds")]),
    ("rolebindings", {"roleRef": {"name": "a/b"}}, [(INVALID, "roleRef.name")]),
    (
        "rolebindings",
        {"subjects": [{"kind": "ServiceAccount", "name": "A", "namespace": "n"}]},
        [(INVALID, "subjects[0].name")],
    ),
    ("clusterroles", {"aggregationRule": {}}, [(REQUIRED, "aggregationRule.clusterRoleSelectors")]),
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
    ("statefulsets", claiming({}), [(REQUIRED, "spec.volumeClaimTemplates[0].spec." + key) for key in UNCLAIMED]),
    ("statefulsets", claiming(CLAIM, mounted="w"), [("FieldValueNotFound", f"{MOUNTS}[0].name")]),
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
    ("pods", running(env=[{"name": "A", "valueFrom": {}}]), [(INVALID, f"{C}.env[0].valueFrom")]),
    ("pods", running(livenessProbe={}), [(REQUIRED, f"{C}.livenessProbe")]),
    (
        "pods",
        running(livenessProbe={"httpGet": {"port": 80}, "successThreshold": 2}),
        [(INVALID, f"{C}.livenessProbe.successThreshold")],
    ),
    ("pods", running(resources={"requests": {"x": "2"}}), [(INVALID, f"{C}.resources.requests[x]")] * 2),
    ("pods", spec(tolerations=[{"key": "a", "operator": "X"}]), [(UNKNOWN, "spec.tolerations[0].operator")]),
    ("pods", spec(activeDeadlineSeconds=0), [(INVALID, "spec.activeDeadlineSeconds")]),
    ("pods", spec(nodeSelector={"a b": "c"}), [(INVALID, "spec.nodeSelector")]),
    (
        "pods",
        spec(volumes=[{"name": "v", "configMap": {"name": "x", "items": [{"key": "", "path": "../x"}]}}]),
        [(REQUIRED, "spec.volumes[0].configMap.items[0].key"), (INVALID, "spec.volumes[0].configMap.items[0].path")],
    ),
    ("pods", spec(dnsPolicy="None"), [(REQUIRED, "spec.dnsConfig")]),
    *(
        ("pods", change, wanted)
        for change, wanted in [
            (mounting(mountPath="/x"), [(REQUIRED, f"{MOUNT}[0].name"), (MISSING, f"{MOUNT}[0].name")]),
            (mounting(name="v", mountPath="/x", subPath="../y"), [(INVALID, f"{MOUNT}.subPath")]),
            (mounting(name="v", mountPath="/x", mountPropagation="X"), [(UNKNOWN, f"{MOUNT}.mountPropagation")]),
            (running(volumeDevices=[{"name": "v", "devicePath": "/x"}]), [(MISSING, f"{C}.volumeDevices[0].name")]),
            (running(envFrom=[{}]), [(INVALID, f"{C}.envFrom")]),
            (running(envFrom=[{"secretRef": {}}]), [(REQUIRED, f"{C}.envFrom[0].secretRef.name")]),
            (valued(fieldRef={}), [(REQUIRED, f"{FROM}.fieldRef.fieldPath")]),
            (valued(fieldRef={"fieldPath": "spec.x"}), [(INVALID, f"{FROM}.fieldRef.fieldPath")]),
            (valued(fieldRef={"fieldPath": "metadata.labels"}), [(UNKNOWN, f"{FROM}.fieldRef.fieldPath")]),
            (valued(resourceFieldRef={"resource": "limits.x"}), [(UNKNOWN, f"{FROM}.resourceFieldRef.resource")]),
            (
                valued(resourceFieldRef={"resource": "limits.cpu", "divisor": "2"}),
                [(INVALID, f"{FROM}.resourceFieldRef.divisor")],
            ),
            (
                valued(secretKeyRef={"key": "a b"}),
                [(INVALID, f"{FROM}.secretKeyRef.{key}") for key in ("name", "key")],
            ),
            (running(livenessProbe={"grpc": {"port": 0}}), [(INVALID, f"{C}.livenessProbe.grpc.port")]),
            (running(lifecycle={"preStop": {"sleep": {"seconds": 31}}}), [(INVALID, f"{C}.lifecycle.preStop.sleep")]),
            (
                running(readinessProbe={"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 1}),
                [(INVALID, f"{C}.readinessProbe.terminationGracePeriodSeconds")],
            ),
            (running(securityContext={"seccompProfile": {}}), [(REQUIRED, f"{C}.securityContext.seccompProfile.type")]),
            (
                running(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
                [(INVALID, f"{C}.securityContext")],
            ),
            (running(resizePolicy=[{}]), [(REQUIRED, f"{C}.resizePolicy")] * 2),
            (running(restartPolicy="X"), [(UNKNOWN, f"{C}.restartPolicy")]),
            (
                running(ports=[{"containerPort": 1, "hostPort": 2}, {"containerPort": 3, "hostPort": 2}]),
                [("FieldValueDuplicate", f"{C}.ports[1].hostPort")],
            ),
            (
                spec(securityContext={"fsGroupChangePolicy": "X"}),
                [(UNKNOWN, "spec.securityContext.fsGroupChangePolicy")],
            ),
            (spec(securityContext={"sysctls": [{"name": "A"}]}), [(INVALID, "spec.securityContext.sysctls[0].name")]),
            (spec(dnsPolicy="None", dnsConfig={}), [(REQUIRED, "spec.dnsConfig.nameservers")]),
            (spec(schedulingGates=[{"name": "a.b/c"}] * 2), [("FieldValueDuplicate", "spec.schedulingGates[1]")]),
            (
                spec(topologySpreadConstraints=[SPREAD] * 2),
                [("FieldValueDuplicate", f"{SPREADS}[0].{{{', '.join(PAIR)}}}")],
            ),
            (spec(topologySpreadConstraints=[{**SPREAD, "minDomains": 0}]), [(INVALID, f"{SPREADS}[0].minDomains")]),
            (
                spec(topologySpreadConstraints=[{**SPREAD, "matchLabelKeys": ["a"]}]),
                [(FORBIDDEN, f"{SPREADS}[0].matchLabelKeys")],
            ),
            (spec(tolerations=[{"key": "a", "value": "b c"}]), [(INVALID, "spec.tolerations[0].operator")]),
            (
                affine(
                    nodeAffinity={LATER: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]}}
                ),
                [(INVALID, f"spec.affinity.nodeAffinity.{LATER}.nodeSelectorTerms[0].matchExpressions[0].operator")],
            ),
            (
                affine(podAntiAffinity={LATER: [{"labelSelector": {}}]}),
                [
                    (reason, f"spec.affinity.podAntiAffinity.{LATER}[0].topologyKey")
                    for reason in (REQUIRED, INVALID, INVALID)
                ],
            ),
            (volume(hostPath={"path": "/../x"}), [(INVALID, f"{V}.hostPath.path")]),
            (
                volume(projected={"sources": [{"serviceAccountToken": {}}]}),
                [(REQUIRED, f"{V}.projected.path"), (FORBIDDEN, f"{V}.projected.sources[0].serviceAccountToken")],
            ),
            (volume(projected={"sources": [{"secret": {}}]}), [(REQUIRED, f"{V}.projected.sources[0].secret.name")]),
            (volume(downwardAPI={"items": [{"path": "x"}]}), [(REQUIRED, f"{V}.downwardAPI")]),
            (volume(csi={"driver": "A b"}), [(INVALID, f"{V}.csi.driver")]),
            (volume(ephemeral={}), [(REQUIRED, f"{V}.ephemeral.volumeClaimTemplate")]),
            (volume(emptyDir={"sizeLimit": "-1"}), [(FORBIDDEN, f"{V}.emptyDir.sizeLimit")]),
            (volume(image={}), [(REQUIRED, f"{V}.image.reference")]),
            (volume(emptyDir={}, hostPath={"path": "/x"}), [(FORBIDDEN, f"{V}.hostPath")]),
        ]
    ),
    (
        "jobs",
        indexed(successPolicy={"rules": [{"succeededIndexes": "0-9"}]}),
        [(INVALID, f"{ENOUGH}.succeededIndexes")],
    ),
    ("jobs", indexed(successPolicy={"rules": [{"succeededCount": 4}]}), [(INVALID, f"{ENOUGH}.succeededCount")]),
    (
        "jobs",
        spec(podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 0]}}]}),
        [(INVALID, f"spec.podFailurePolicy.rules[0].onExitCodes.values{which}") for which in ("[1]", "")],
    ),
    ("services", spec(type="X"), [(UNKNOWN, "spec.type")]),
    (
        "services",
        spec(clusterIP=None, type="LoadBalancer", loadBalancerClass="a b", externalTrafficPolicy="X"),
        [(INVALID, "spec.loadBalancerClass"), (UNKNOWN, "spec.externalTrafficPolicy")],
    ),
    (
        "ingresses",
        spec(defaultBackend={"service": None, "resource": {"apiGroup": "A", "kind": "a/b", "name": "c"}}),
        [(INVALID, f"spec.defaultBackend.resource.{key}") for key in ("apiGroup", "kind")],
    ),
    ("ingresses", spec(ingressClassName=""), [(INVALID, "spec.ingressClassName")]),
    (
        "ingressclasses",
        spec(parameters={"apiGroup": "A", "kind": "K", "name": "n"}),
        [(INVALID, "spec.parameters.apiGroup")],
    ),
    (
        "networkpolicies",
        spec(ingress=[{"from": [{"ipBlock": {}}]}]),
        [(REQUIRED, "spec.ingress[0].from[0].ipBlock.cidr")],
    ),
    (
        "networkpolicies",
        spec(egress=[{"ports": [{"port": 80, "endPort": 70000}]}]),
        [(INVALID, "spec.egress[0].ports[0].endPort")],
    ),
    (
        "horizontalpodautoscalers",
        spec(scaleTargetRef={"apiVersion": "a/b/c"}),
        [(INVALID, "spec.scaleTargetRef.apiVersion")],
    ),
    (
        "horizontalpodautoscalers",
        spec(metrics=[{"type": "Pods", "pods": {"metric": {"name": "a/b"}, "target": AVERAGE}}]),
        [(INVALID, "spec.metrics[0].pods.metric.name")],
    ),
    (
        "persistentvolumeclaims",
        spec(dataSourceRef={"apiGroup": "A", "kind": "K"}),
        [
            (reason, f"spec.{source}.{key}")
            for source in ("dataSource", "dataSourceRef")
            for reason, key in ((REQUIRED, "name"), (INVALID, "apiGroup"))
        ],
    ),
    (
        "persistentvolumes",
        spec(hostPath=None, csi={"driver": "a b"}),
        [(INVALID, "spec.csi.driver"), (REQUIRED, "spec.csi.volumeHandle")],
    ),
    ("persistentvolumes", spec(hostPath={"path": "/../x"}), [(INVALID, "spec.hostPath.path")]),
    ("persistentvolumes", spec(nodeAffinity={}), [(REQUIRED, "spec.nodeAffinity.required")]),
    (
        "persistentvolumes",
        spec(hostPath=None, local={}, nodeAffinity=None),
        [(REQUIRED, "spec.local.path"), (REQUIRED, "spec.nodeAffinity")],
    ),
    (
        "endpointslices",
        {"endpoints": [{"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": "a"}] * 2}}]},
        [("FieldValueDuplicate", "endpoints[0].hints.forZones[1].name")],
    ),
    ("runtimeclasses", {"scheduling": {"nodeSelector": {"a": "b c"}}}, [(INVALID, "scheduling.nodeSelector")]),
    (
        "validatingwebhookconfigurations",
        hooked(admissionReviewVersions=["v1", "v1"]),
        [(INVALID, "webhooks[0].admissionReviewVersions[1]")],
    ),
    (
        "validatingwebhookconfigurations",
        hooked(clientConfig={"service": {"namespace": "n", "path": "/A"}}),
        [(REQUIRED, "webhooks[0].clientConfig.service.namespace"), (INVALID, "webhooks[0].clientConfig.service.path")],
    ),
    (
        "validatingwebhookconfigurations",
        hooked(clientConfig={"url": "http:///x?y"}),
        [(INVALID, "webhooks[0].clientConfig.url")] * 3,
    ),
    (
        "validatingwebhookconfigurations",
        hooked(matchConditions=[{}], rules=[{**NO_RULE, "resources": ["*", "a"]}]),
        [(INVALID, "webhooks[0].rules[0].resources")]
        + [(REQUIRED, f"webhooks[0].matchConditions[0].{key}") for key in ("expression", "name")],
    ),
    ("namespaces", {"metadata": {"labels": {SECURE: "x"}}}, [(INVALID, f"metadata.labels[{SECURE}]")]),
    ("services", spec(externalTrafficPolicy="Local"), [(INVALID, "spec.externalTrafficPolicy")]),
    ("services", spec(ports=[{"port": 80, "nodePort": 30000}]), [(FORBIDDEN, "spec.ports[0].nodePort")]),
    ("services", spec(ipFamilies=["IPv6"]), [(INVALID, "spec.ipFamilies[0]")]),
    ("endpointslices", {"endpoints": [{"addresses": ["127.0.0.1"]}]}, [(INVALID, "endpoints[0].addresses[0]")]),
    *(
        ("endpointslices", addressed(kind, given), [(INVALID, "endpoints[0].addresses[0]")])
        for kind, given in [
            ("FQDN", "backend"),
            ("FQDN", "backend."),
            ("FQDN", f"{'a' * 64}.example.com"),
            ("FQDN", f"a.{'b' * 64}.{'c' * 64}"),
            ("FQDN", "a" * 64),
            ("FQDN", "."),
            ("FQDN", "Backend.example.com"),
            ("IPv4", "0.0.0.0"),
            ("IPv4", "169.254.1.1"),
            ("IPv4", "224.0.0.1"),
            ("IPv4", "::ffff:1.2.3.4"),
            ("IPv6", "fe80::1"),
            ("IPv6", "fe80::1%eth0"),
            ("IPv6", "ff02::1"),
            ("IPv6", "2001:DB8::1"),
        ]
    ),
    ("endpointslices", addressed("FQDN", ""), [(REQUIRED, "endpoints[0].addresses[0]")]),
    (
        "endpointslices",
        addressed("IPv4", "fe80::1"),
        [(INVALID, "endpoints[0].addresses"), (INVALID, "endpoints[0].addresses[0]")],
    ),
    ("endpointslices", {"ports": [{"name": "a"}, {"name": "a"}]}, [("FieldValueDuplicate", "ports[1].name")]),
    ("ingresses", spec(defaultBackend={"service": None}), [(INVALID, "spec.defaultBackend")]),
    ("ingresses", spec(rules=[{"host": "1.2.3.4"}]), [(INVALID, "spec.rules[0].host")]),
    (
        "networkpolicies",
        spec(ingress=[{"ports": [{"port": 80, "endPort": 70}], "from": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]),
        [(INVALID, "spec.ingress[0].ports[0].endPort"), (INVALID, "spec.ingress[0].from[0].ipBlock.cidr")],
    ),
    ("validatingwebhookconfigurations", hooked(name="w"), [(INVALID, "webhooks[0].name")]),
    ("validatingwebhookconfigurations", hooked(timeoutSeconds=31), [(INVALID, "webhooks[0].timeoutSeconds")]),
    (
        "validatingwebhookconfigurations",
        hooked(rules=[{**NO_RULE, "operations": ["X"]}]),
        [(UNKNOWN, "webhooks[0].rules[0].operations[0]")],
    ),
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
ON_NODES = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
BALANCED = {"type": "LoadBalancer", "loadBalancerClass": "example.com/a", "ports": [{"port": 80}]}
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
CHANGED = [  # an object, what it is replaced by, the code and the causes
    ("persistentvolumeclaims", {"spec": {**CLAIM, "dataSource": SNAPSHOT}}, {}, 200, None),
    (
        "persistentvolumeclaims",
        {"spec": {**CLAIM, "storageClassName": ""}},
        {"spec": {**CLAIM, "storageClassName": "a"}},
        422,
        [(FORBIDDEN, "spec")],
    ),
    (
        "persistentvolumes",
        {"spec": {**VOLUME, "nodeAffinity": {"required": {"nodeSelectorTerms": ON_NODES}}}},
        {"spec": VOLUME},
        422,
        [(INVALID, "nodeAffinity")],
    ),
    (
        "services",
        {"spec": BALANCED},
        {"spec": {**BALANCED, "loadBalancerClass": "example.com/b"}},
        422,
        [(INVALID, "spec.loadBalancerClass")],
    ),
]
UPDATED = [
    ("pods", running(image=""), [(REQUIRED, f"{C}.image")] * 2),
    ("endpointslices", {"addressType": None}, [(REQUIRED, "addressType"), (INVALID, "addressType")]),
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
    ("statefulsets", spec(serviceName="A"), [(FORBIDDEN, "spec")]),
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
    answer = await api.transport().request(HttpRequest(method, path, query=query, headers=headers, body=data))
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


@pytest.mark.parametrize("case", CHANGED, ids=[f"{plural}-{index}" for index, (plural, *_) in enumerate(CHANGED)])
async def test_an_object_is_replaced_by_a_manifest(api, case):
    """As people write them: without what the server filled in."""
    plural, given, changed, wanted, told = case
    path, name = collection(api, plural), f"{api.namespace}-{plural[:20]}"
    obj = {"metadata": {"name": name}, **given}
    code, body = await ask(api, "POST", path, obj)
    assert code == 201, body
    try:
        code, body = await ask(api, "PUT", f"{path}/{name}", {**obj, **changed})
        assert (code, causes(body) if told else None) == (wanted, told), body
    finally:
        await ask(api, "DELETE", f"{path}/{name}", {})


FOREIGN = {"apiGroup": "example.com", "kind": "K", "name": "n"}
SINGLE = {"clusterIP": "None", "selector": None, "ipFamilyPolicy": "SingleStack"}
CONTAINER = ("spec", "template", "spec", "containers", 0)
TO_HOST = {"containers": [{**POD["containers"][0], "ports": [{"containerPort": 80}]}], "hostNetwork": True}
PORT = {"containerPort": 80, "protocol": "TCP"}
OF_IMAGE = {"name": "v", "image": {"reference": "i"}}
DISK = {"diskName": "d", "diskURI": "https://blob.core.windows.net/d"}
AT_HOST = {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}
GIVEN = [  # what is given, where to look, and what stands there
    ("statefulsets", claiming(CLAIM), (*CONTAINER, "volumeMounts", 0, "name"), "v"),
    ("statefulsets", templated(hostname="A_b"), ("spec", "template", "spec", "hostname"), "A_b"),
    ("deployments", templated(**TO_HOST), (*CONTAINER, "ports"), [PORT]),
    ("pods", spec(**TO_HOST), ("spec", "containers", 0, "ports"), [{**PORT, "hostPort": 80}]),
    ("pods", spec(volumes=[OF_IMAGE]), ("spec", "volumes", 0, "image", "pullPolicy"), "Always"),
    ("persistentvolumes", spec(hostPath=None, azureDisk=DISK), ("spec", "azureDisk"), DISK | AT_HOST),
    (
        "persistentvolumes",
        spec(claimRef={"name": "c"}),
        ("metadata", "managedFields", 0, "fieldsV1", "f:spec", "f:claimRef"),
        {".": {}, "f:name": {}},
    ),
    ("services", spec(**SINGLE), ("spec", "ipFamilies"), ["IPv4"]),
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
    ("daemonsets", {"metadata": {"annotations": {GENERATION: "5"}}}, ("metadata", "annotations", GENERATION), "5"),
    ("statefulsets", spec(updateStrategy={"rollingUpdate": {"maxUnavailable": 1}}), STRATEGY, {"partition": 0}),
    ("services", spec(externalIPs=["1.2.3.4"]), ("spec", "externalTrafficPolicy"), "Cluster"),
    ("pods", spec(resources={"limits": {"cpu": "1"}}), ("spec", "resources", "requests"), {"cpu": "1"}),
    ("pods", spec(resources={"limits": {"cpu": "1"}}), ("status", "qosClass"), "Burstable"),
    ("pods", running(image="Odd"), ("spec", "containers", 0, "imagePullPolicy"), "IfNotPresent"),
    ("pods", spec(schedulingGates=[{"name": "a.b/c"}]), ("status", "conditions", 0, "reason"), "SchedulingGated"),
    ("persistentvolumeclaims", spec(dataSourceRef=SOURCE), ("spec", "dataSource"), {"apiGroup": None, **SOURCE}),
    ("persistentvolumeclaims", spec(dataSource={"kind": "X", "name": "y"}), ("spec", "dataSource"), None),
    ("persistentvolumeclaims", spec(dataSourceRef=FOREIGN), ("spec", "dataSource"), FOREIGN),
]


async def test_what_is_given_is_completed(api):
    for plural, change, path, wanted in GIVEN:
        obj = merged({"metadata": {"name": "x"}, **KINDS[plural][1]}, change)
        code, found = await ask(api, "POST", collection(api, plural), obj, dryRun="All")
        assert code == 201, found
        for key in path:
            found = found[key] if isinstance(found, list) else found.get(key)
        assert (plural, change, found) == (plural, change, wanted)


async def test_an_annotation_that_was_a_number_is_read_as_one(api):
    obj = merged(
        {"metadata": {"name": "x"}, **KINDS["daemonsets"][1]}, {"metadata": {"annotations": {GENERATION: "x"}}}
    )
    code, body = await ask(api, "POST", collection(api, "daemonsets"), obj, dryRun="All")
    assert (code, body["message"].rpartition(": strconv")[2]) == (400, '.ParseInt: parsing "x": invalid syntax')


async def test_names_are_checked_by_their_kind(api):
    code, body = await ask(api, "POST", "/api/v1/namespaces", {"metadata": {"generateName": "gen-"}}, dryRun="All")
    assert (code, body["metadata"]["labels"]) == (201, {"kubernetes.io/metadata.name": body["metadata"]["name"]})
    budgets = f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets"
    code, body = await ask(api, "POST", budgets, {"metadata": {"name": "Any_Name"}, "spec": {}}, dryRun="All")
    assert code == 201, body
