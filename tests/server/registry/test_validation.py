"""Tests of invalid objects of built-in kinds. Both servers must agree with each row of the tables."""

import pytest

from .objects import (
    CLAIM,
    MERGE_PATCH,
    RULE,
    VOLUME,
    WEBHOOK,
    claim_template,
    collection_path,
    container,
    field_errors,
    new_object,
    send,
    spec,
)

REQUIRED_LATER = "requiredDuringSchedulingIgnoredDuringExecution"
SPREAD_CONSTRAINT = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}
AVERAGE_TARGET = {"type": "AverageValue", "averageValue": "1"}
ENFORCE = "pod-security.kubernetes.io/enforce"
NO_SPEC = {"spec": None}


def scale_up(**scaling):
    return spec(behavior={"scaleUp": scaling})


def mount(**fields):
    return spec(**container(volumeMounts=[fields])["spec"], volumes=[{"name": "v"}])


def env_value(**source):
    return container(env=[{"name": "A", "valueFrom": source}])


def volume(**source):
    return spec(volumes=[{"name": "v", **source}])


def affinity(**fields):
    return spec(affinity=fields)


def indexed(**fields):
    return spec(completionMode="Indexed", completions=3, **fields)


def webhook(**fields):
    return {"webhooks": [{**WEBHOOK, **fields}]}


def subset(*ports, **address):
    return {"subsets": [{"addresses": [{"ip": "10.0.0.1", **address}], "ports": list(ports)}]}


def address(kind, address):
    return {"addressType": kind, "endpoints": [{"addresses": [address]}]}


REJECTED_ON_CREATE = {  # kind: a change of its valid object, and the errors
    "endpoints": [
        ({"subsets": [{}]}, "Required subsets[0]"),
        (subset(ip="1.2.3"), "Invalid subsets[0].addresses[0].ip", "Invalid subsets[0].addresses[0].ip"),
        (subset(ip="fe80::1%eth0"), "Invalid subsets[0].addresses[0].ip", "Invalid subsets[0].addresses[0].ip"),
        (subset(ip="127.0.0.1"), "Invalid subsets[0].addresses[0].ip"),
        (subset(ip="010.0.0.1"), "Invalid subsets[0].addresses[0].ip"),
        (subset(ip="::ffff:1.2.3.4"), "Invalid subsets[0].addresses[0].ip"),
        (
            subset(hostname="A", nodeName="B"),
            "Invalid subsets[0].addresses[0].hostname",
            "Invalid subsets[0].addresses[0].nodeName",
        ),
        (
            subset({"port": 80}, {"port": 0, "name": "a"}),
            "Required subsets[0].ports[0].name",
            "Invalid subsets[0].ports[1].port",
        ),
        (subset({"port": 80, "protocol": "X"}), "NotSupported subsets[0].ports[0].protocol"),
    ],
    "nodes": [
        (
            spec(taints=[{}]),
            "Invalid metadata.taints[0].key",
            "Invalid metadata.taints[0].key",
            "Required metadata.taints[0].effect",
        ),
        (
            spec(taints=[{"key": "a", "value": "b c", "effect": "X"}]),
            "Invalid metadata.taints[0].value",
            "NotSupported metadata.taints[0].effect",
        ),
        (spec(taints=[{"key": "a", "effect": "NoExecute"}] * 2), "Duplicate metadata.taints[1]"),
        (spec(podCIDRs=["10.0.0.0/24", "10.1.0.0/24"]), "Invalid spec.podCIDRs"),
        (spec(podCIDR="x"), "Invalid spec.podCIDRs[0]"),
        ({"status": {"capacity": {"cpu": "-1"}}}, "Invalid status.capacity.cpu", "Invalid status.allocatable.cpu"),
    ],
    "certificatesigningrequests": [
        (spec(request="eA=="), "Invalid spec.request"),
        (spec(usages=["x", "any", "any"]), "NotSupported spec.usages[0]", "Duplicate spec.usages[2]"),
        (spec(usages=None), "Required spec.usages"),
        (spec(signerName="/x"), "Invalid spec.signerName", "Invalid spec.signerName"),
        (spec(signerName="kubernetes.io/legacy-unknown"), "Invalid spec.signerName"),
        (spec(expirationSeconds=5), "Invalid spec.expirationSeconds"),
    ],
    "rolebindings": [
        ({"roleRef": {"name": "a/b"}}, "Invalid roleRef.name"),
        ({"subjects": [{"kind": "ServiceAccount", "name": "A", "namespace": "n"}]}, "Invalid subjects[0].name"),
    ],
    "clusterroles": [({"aggregationRule": {}}, "Required aggregationRule.clusterRoleSelectors")],
    "deployments": [
        (spec(minReadySeconds=-1), "Invalid spec.minReadySeconds"),
        (spec(minReadySeconds=600), "Invalid spec.progressDeadlineSeconds"),
        (spec(strategy={"type": "X"}), "NotSupported spec.strategy"),
        (spec(selector={"matchLabels": {"app": "a b"}}), "Invalid spec.selector.matchLabels", "Invalid spec.selector"),
    ],
    "replicasets": [
        (
            spec(template={"spec": {"restartPolicy": "X"}}),
            "NotSupported spec.template.spec.restartPolicy",
            "NotSupported spec.template.spec.restartPolicy",
        )
    ],
    "daemonsets": [
        (spec(updateStrategy={"rollingUpdate": {"maxSurge": 1}}), "Invalid spec.updateStrategy.rollingUpdate.maxSurge"),
        (
            spec(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
            "Required spec.updateStrategy.rollingUpdate.maxUnavailable",
        ),
    ],
    "statefulsets": [
        (spec(podManagementPolicy="X"), "Invalid spec.podManagementPolicy"),
        (spec(ordinals={"start": -1}), "Invalid spec.ordinals.start"),
        (
            claim_template({}),
            "Required spec.volumeClaimTemplates[0].spec.accessModes",
            "Required spec.volumeClaimTemplates[0].spec.resources[storage]",
        ),
        (claim_template(CLAIM, mounted="w"), "NotFound spec.template.spec.containers[0].volumeMounts[0].name"),
    ],
    "controllerrevisions": [({"revision": -1}, "Invalid revision")],
    "jobs": [
        (spec(completionMode="Indexed", completions=None, parallelism=1), "Required spec.completions"),
        (spec(backoffLimitPerIndex=1), "Invalid spec.backoffLimitPerIndex"),
        (spec(manualSelector=True), "Required spec.selector", "Invalid spec.template.metadata.labels"),
        (spec(podReplacementPolicy="X"), "NotSupported spec.podReplacementPolicy"),
        (
            indexed(successPolicy={"rules": [{"succeededIndexes": "0-9"}]}),
            "Invalid spec.successPolicy.rules[0].succeededIndexes",
        ),
        (
            indexed(successPolicy={"rules": [{"succeededCount": 4}]}),
            "Invalid spec.successPolicy.rules[0].succeededCount",
        ),
        (
            spec(
                podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 0]}}]}
            ),
            "Invalid spec.podFailurePolicy.rules[0].onExitCodes.values[1]",
            "Invalid spec.podFailurePolicy.rules[0].onExitCodes.values",
        ),
    ],
    "cronjobs": [
        (spec(schedule="60 * * * *"), "Invalid spec.schedule"),
        (spec(schedule="TZ=UTC 0 * * * *"), "Invalid spec.schedule"),
        (spec(timeZone="Nowhere/None"), "Invalid spec.timeZone"),
        (spec(concurrencyPolicy="X"), "NotSupported spec.concurrencyPolicy"),
        ({"metadata": {"name": "n" * 53}}, "Invalid metadata.name"),
    ],
    "horizontalpodautoscalers": [
        (spec(minReplicas=5), "Invalid spec.maxReplicas"),
        (spec(metrics=[{"type": "Resource"}]), "Required spec.metrics[0].resource"),
        (
            scale_up(policies=[{"type": "Pods", "value": 0, "periodSeconds": 1801}]),
            "Invalid spec.behavior.scaleUp.policies[0].value",
            "Invalid spec.behavior.scaleUp.policies[0].periodSeconds",
        ),
        (spec(scaleTargetRef={"apiVersion": "a/b/c"}), "Invalid spec.scaleTargetRef.apiVersion"),
        (
            spec(metrics=[{"type": "Pods", "pods": {"metric": {"name": "a/b"}, "target": AVERAGE_TARGET}}]),
            "Invalid spec.metrics[0].pods.metric.name",
        ),
    ],
    "replicationcontrollers": [(spec(selector={"app": "b"}), "Invalid spec.template.metadata.labels")],
    "pods": [
        (container(env=[{"name": "A", "valueFrom": {}}]), "Invalid spec.containers[0].env[0].valueFrom"),
        (container(livenessProbe={}), "Required spec.containers[0].livenessProbe"),
        (
            container(livenessProbe={"httpGet": {"port": 80}, "successThreshold": 2}),
            "Invalid spec.containers[0].livenessProbe.successThreshold",
        ),
        (
            container(resources={"requests": {"x": "2"}}),
            "Invalid spec.containers[0].resources.requests[x]",
            "Invalid spec.containers[0].resources.requests[x]",
        ),
        (spec(tolerations=[{"key": "a", "operator": "X"}]), "NotSupported spec.tolerations[0].operator"),
        (spec(activeDeadlineSeconds=0), "Invalid spec.activeDeadlineSeconds"),
        (spec(nodeSelector={"a b": "c"}), "Invalid spec.nodeSelector"),
        (
            spec(volumes=[{"name": "v", "configMap": {"name": "x", "items": [{"key": "", "path": "../x"}]}}]),
            "Required spec.volumes[0].configMap.items[0].key",
            "Invalid spec.volumes[0].configMap.items[0].path",
        ),
        (spec(dnsPolicy="None"), "Required spec.dnsConfig"),
        (
            mount(mountPath="/x"),
            "Required spec.containers[0].volumeMounts[0].name",
            "NotFound spec.containers[0].volumeMounts[0].name",
        ),
        (mount(name="v", mountPath="/x", subPath="../y"), "Invalid spec.containers[0].volumeMounts.subPath"),
        (
            mount(name="v", mountPath="/x", mountPropagation="X"),
            "NotSupported spec.containers[0].volumeMounts.mountPropagation",
        ),
        (
            container(volumeDevices=[{"name": "v", "devicePath": "/x"}]),
            "NotFound spec.containers[0].volumeDevices[0].name",
        ),
        (container(envFrom=[{}]), "Invalid spec.containers[0].envFrom"),
        (container(envFrom=[{"secretRef": {}}]), "Required spec.containers[0].envFrom[0].secretRef.name"),
        (env_value(fieldRef={}), "Required spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
        (env_value(fieldRef={"fieldPath": "spec.x"}), "Invalid spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"),
        (
            env_value(fieldRef={"fieldPath": "metadata.labels"}),
            "NotSupported spec.containers[0].env[0].valueFrom.fieldRef.fieldPath",
        ),
        (
            env_value(resourceFieldRef={"resource": "limits.x"}),
            "NotSupported spec.containers[0].env[0].valueFrom.resourceFieldRef.resource",
        ),
        (
            env_value(resourceFieldRef={"resource": "limits.cpu", "divisor": "2"}),
            "Invalid spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor",
        ),
        (
            env_value(secretKeyRef={"key": "a b"}),
            "Invalid spec.containers[0].env[0].valueFrom.secretKeyRef.name",
            "Invalid spec.containers[0].env[0].valueFrom.secretKeyRef.key",
        ),
        (container(livenessProbe={"grpc": {"port": 0}}), "Invalid spec.containers[0].livenessProbe.grpc.port"),
        (
            container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
            "Invalid spec.containers[0].lifecycle.preStop.sleep",
        ),
        (
            container(readinessProbe={"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 1}),
            "Invalid spec.containers[0].readinessProbe.terminationGracePeriodSeconds",
        ),
        (
            container(securityContext={"seccompProfile": {}}),
            "Required spec.containers[0].securityContext.seccompProfile.type",
        ),
        (
            container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
            "Invalid spec.containers[0].securityContext",
        ),
        (
            container(resizePolicy=[{}]),
            "Required spec.containers[0].resizePolicy",
            "Required spec.containers[0].resizePolicy",
        ),
        (container(restartPolicy="X"), "NotSupported spec.containers[0].restartPolicy"),
        (
            container(ports=[{"containerPort": 1, "hostPort": 2}, {"containerPort": 3, "hostPort": 2}]),
            "Duplicate spec.containers[0].ports[1].hostPort",
        ),
        (spec(securityContext={"fsGroupChangePolicy": "X"}), "NotSupported spec.securityContext.fsGroupChangePolicy"),
        (spec(securityContext={"sysctls": [{"name": "A"}]}), "Invalid spec.securityContext.sysctls[0].name"),
        (spec(dnsPolicy="None", dnsConfig={}), "Required spec.dnsConfig.nameservers"),
        (spec(schedulingGates=[{"name": "a.b/c"}] * 2), "Duplicate spec.schedulingGates[1]"),
        (
            spec(topologySpreadConstraints=[SPREAD_CONSTRAINT] * 2),
            "Duplicate spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}",
        ),
        (
            spec(topologySpreadConstraints=[{**SPREAD_CONSTRAINT, "minDomains": 0}]),
            "Invalid spec.topologySpreadConstraints[0].minDomains",
        ),
        (
            spec(topologySpreadConstraints=[{**SPREAD_CONSTRAINT, "matchLabelKeys": ["a"]}]),
            "Forbidden spec.topologySpreadConstraints[0].matchLabelKeys",
        ),
        (spec(tolerations=[{"key": "a", "value": "b c"}]), "Invalid spec.tolerations[0].operator"),
        (
            affinity(
                nodeAffinity={
                    REQUIRED_LATER: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]}
                }
            ),
            f"Invalid spec.affinity.nodeAffinity.{REQUIRED_LATER}.nodeSelectorTerms[0].matchExpressions[0].operator",
        ),
        (
            affinity(podAntiAffinity={REQUIRED_LATER: [{"labelSelector": {}}]}),
            "Required spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
            "Invalid spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
            "Invalid spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        ),
        (volume(hostPath={"path": "/../x"}), "Invalid spec.volumes[0].hostPath.path"),
        (
            volume(projected={"sources": [{"serviceAccountToken": {}}]}),
            "Required spec.volumes[0].projected.path",
            "Forbidden spec.volumes[0].projected.sources[0].serviceAccountToken",
        ),
        (volume(projected={"sources": [{"secret": {}}]}), "Required spec.volumes[0].projected.sources[0].secret.name"),
        (volume(downwardAPI={"items": [{"path": "x"}]}), "Required spec.volumes[0].downwardAPI"),
        (volume(csi={"driver": "A b"}), "Invalid spec.volumes[0].csi.driver"),
        (volume(ephemeral={}), "Required spec.volumes[0].ephemeral.volumeClaimTemplate"),
        (volume(emptyDir={"sizeLimit": "-1"}), "Forbidden spec.volumes[0].emptyDir.sizeLimit"),
        (volume(image={}), "Required spec.volumes[0].image.reference"),
        (volume(emptyDir={}, hostPath={"path": "/x"}), "Forbidden spec.volumes[0].hostPath"),
    ],
    "services": [
        (spec(type="X"), "NotSupported spec.type"),
        (
            spec(clusterIP=None, type="LoadBalancer", loadBalancerClass="a b", externalTrafficPolicy="X"),
            "Invalid spec.loadBalancerClass",
            "NotSupported spec.externalTrafficPolicy",
        ),
        (spec(externalTrafficPolicy="Local"), "Invalid spec.externalTrafficPolicy"),
        (spec(ports=[{"port": 80, "nodePort": 30000}]), "Forbidden spec.ports[0].nodePort"),
        (spec(ipFamilies=["IPv6"]), "Invalid spec.ipFamilies[0]"),
    ],
    "ingresses": [
        (
            spec(defaultBackend={"service": None, "resource": {"apiGroup": "A", "kind": "a/b", "name": "c"}}),
            "Invalid spec.defaultBackend.resource.apiGroup",
            "Invalid spec.defaultBackend.resource.kind",
        ),
        (spec(ingressClassName=""), "Invalid spec.ingressClassName"),
        (spec(defaultBackend={"service": None}), "Invalid spec.defaultBackend"),
        (spec(rules=[{"host": "1.2.3.4"}]), "Invalid spec.rules[0].host"),
    ],
    "ingressclasses": [
        (spec(parameters={"apiGroup": "A", "kind": "K", "name": "n"}), "Invalid spec.parameters.apiGroup"),
        (spec(parameters={"kind": "K", "name": "n", "scope": "Namespace"}), "Required spec.parameters.namespace"),
    ],
    "networkpolicies": [
        (spec(ingress=[{"from": [{"ipBlock": {}}]}]), "Required spec.ingress[0].from[0].ipBlock.cidr"),
        (spec(egress=[{"ports": [{"port": 80, "endPort": 70000}]}]), "Invalid spec.egress[0].ports[0].endPort"),
        (
            spec(ingress=[{"ports": [{"port": 80, "endPort": 70}], "from": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]),
            "Invalid spec.ingress[0].ports[0].endPort",
            "Invalid spec.ingress[0].from[0].ipBlock.cidr",
        ),
    ],
    "persistentvolumeclaims": [
        (
            spec(dataSourceRef={"apiGroup": "A", "kind": "K"}),
            "Required spec.dataSource.name",
            "Invalid spec.dataSource.apiGroup",
            "Required spec.dataSourceRef.name",
            "Invalid spec.dataSourceRef.apiGroup",
        ),
        (spec(accessModes=["X"]), "NotSupported spec.accessModes"),
        (spec(resources={"requests": {"storage": "0"}}), "Invalid spec.resources[storage]"),
    ],
    "persistentvolumes": [
        (spec(hostPath=None, csi={"driver": "a b"}), "Invalid spec.csi.driver", "Required spec.csi.volumeHandle"),
        (spec(hostPath={"path": "/../x"}), "Invalid spec.hostPath.path"),
        (spec(nodeAffinity={}), "Required spec.nodeAffinity.required"),
        (spec(hostPath=None, local={}, nodeAffinity=None), "Required spec.local.path", "Required spec.nodeAffinity"),
        (spec(hostPath=None), "Required spec"),
        (spec(capacity=None), "Required spec.capacity", "NotSupported spec.capacity"),
    ],
    "endpointslices": [
        (
            {"endpoints": [{"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": "a"}] * 2}}]},
            "Duplicate endpoints[0].hints.forZones[1].name",
        ),
        ({"endpoints": [{"addresses": ["127.0.0.1"]}]}, "Invalid endpoints[0].addresses[0]"),
        (address("FQDN", "backend"), "Invalid endpoints[0].addresses[0]"),
        (address("FQDN", "backend."), "Invalid endpoints[0].addresses[0]"),
        (address("FQDN", f"{'a' * 64}.example.com"), "Invalid endpoints[0].addresses[0]"),
        (address("FQDN", f"a.{'b' * 64}.{'c' * 64}"), "Invalid endpoints[0].addresses[0]"),
        (address("FQDN", "a" * 64), "Invalid endpoints[0].addresses[0]"),
        (address("FQDN", "."), "Invalid endpoints[0].addresses[0]"),
        (address("FQDN", "Backend.example.com"), "Invalid endpoints[0].addresses[0]"),
        (address("IPv4", "0.0.0.0"), "Invalid endpoints[0].addresses[0]"),
        (address("IPv4", "169.254.1.1"), "Invalid endpoints[0].addresses[0]"),
        (address("IPv4", "224.0.0.1"), "Invalid endpoints[0].addresses[0]"),
        (address("IPv4", "::ffff:1.2.3.4"), "Invalid endpoints[0].addresses[0]"),
        (address("IPv6", "fe80::1"), "Invalid endpoints[0].addresses[0]"),
        (address("IPv6", "fe80::1%eth0"), "Invalid endpoints[0].addresses[0]"),
        (address("IPv6", "ff02::1"), "Invalid endpoints[0].addresses[0]"),
        (address("IPv6", "2001:DB8::1"), "Invalid endpoints[0].addresses[0]"),
        (address("FQDN", ""), "Required endpoints[0].addresses[0]"),
        (address("IPv4", "fe80::1"), "Invalid endpoints[0].addresses", "Invalid endpoints[0].addresses[0]"),
        ({"ports": [{"name": "a"}, {"name": "a"}]}, "Duplicate ports[1].name"),
    ],
    "runtimeclasses": [
        ({"scheduling": {"nodeSelector": {"a": "b c"}}}, "Invalid scheduling.nodeSelector"),
        ({"handler": ""}, "Required handler"),
    ],
    "validatingwebhookconfigurations": [
        (webhook(admissionReviewVersions=["v1", "v1"]), "Invalid webhooks[0].admissionReviewVersions[1]"),
        (
            webhook(clientConfig={"service": {"namespace": "n", "path": "/A"}}),
            "Required webhooks[0].clientConfig.service.namespace",
            "Invalid webhooks[0].clientConfig.service.path",
        ),
        (
            webhook(clientConfig={"url": "http:///x?y"}),
            "Invalid webhooks[0].clientConfig.url",
            "Invalid webhooks[0].clientConfig.url",
            "Invalid webhooks[0].clientConfig.url",
        ),
        (
            webhook(matchConditions=[{}], rules=[{**RULE, "resources": ["*", "a"]}]),
            "Invalid webhooks[0].rules[0].resources",
            "Required webhooks[0].matchConditions[0].expression",
            "Required webhooks[0].matchConditions[0].name",
        ),
        (webhook(name="w"), "Invalid webhooks[0].name"),
        (webhook(timeoutSeconds=31), "Invalid webhooks[0].timeoutSeconds"),
        (webhook(rules=[{**RULE, "operations": ["X"]}]), "NotSupported webhooks[0].rules[0].operations[0]"),
    ],
    "namespaces": [
        ({"metadata": {"labels": {ENFORCE: "x"}}}, "Invalid metadata.labels[pod-security.kubernetes.io/enforce]")
    ],
    "podtemplates": [({"template": None}, "Required template.spec.containers")],
    "resourcequotas": [
        (spec(hard={"x": "1"}), "Invalid spec.hard[x]", "Invalid spec.hard[x]"),
        (spec(scopes=["X"]), "Invalid spec.scopes"),
    ],
    "limitranges": [
        (
            spec(
                limits=[{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]
            ),
            "Invalid spec.limits[0].min[cpu]",
            "Invalid spec.limits[0].defaultRequest[cpu]",
            "Invalid spec.limits[0].default[cpu]",
        )
    ],
    "storageclasses": [({"reclaimPolicy": "Recycle"}, "NotSupported reclaimPolicy")],
    "csidrivers": [(spec(fsGroupPolicy="X"), "NotSupported spec.fsGroupPolicy")],
}
REJECTED_ON_UPDATE = {  # kind: a merge patch of its valid object, and the errors
    "pods": [(container(image=""), "Required spec.containers[0].image", "Required spec.containers[0].image")],
    "endpointslices": [({"addressType": None}, "Required addressType", "Invalid addressType")],
    "daemonsets": [
        (spec(selector={"matchLabels": {"app": "b"}}), "Invalid spec.selector", "Invalid spec.template.metadata.labels")
    ],
    "statefulsets": [
        (spec(updateStrategy={"type": "OnDelete"}), "Invalid spec.updateStrategy.rollingUpdate"),
        (spec(serviceName="A"), "Forbidden spec"),
    ],
    "jobs": [
        (spec(parallelism=-1), "Invalid spec.parallelism", "Invalid spec.parallelism"),
        (spec(managedBy="example.com/m"), "Invalid spec.managedBy"),
        (
            spec(selector=None),
            "Required spec.selector",
            "Invalid spec.template.metadata.labels",
            "Required spec.selector",
            "Invalid spec.template.metadata.labels",
            "Invalid spec.selector",
        ),
    ],
    "cronjobs": [
        (
            NO_SPEC,
            "Required spec.schedule",
            "Required spec.jobTemplate.spec.template.spec.containers",
            "Required spec.jobTemplate.spec.template.spec.restartPolicy",
        )
    ],
    "horizontalpodautoscalers": [
        (
            NO_SPEC,
            "Required spec.maxReplicas",
            "Invalid spec.maxReplicas",
            "Required spec.scaleTargetRef.kind",
            "Required spec.scaleTargetRef.name",
            "Invalid spec.scaleTargetRef.apiVersion",
        )
    ],
    "replicationcontrollers": [(NO_SPEC, "Required spec.selector", "Required spec.template")],
    "persistentvolumeclaims": [
        (
            NO_SPEC,
            "Required spec.accessModes",
            "Required spec.resources[storage]",
            "Forbidden spec",
            "Forbidden spec.resources.requests.storage",
        ),
        (spec(volumeMode="Block"), "Forbidden spec", "Invalid volumeMode"),
    ],
    "persistentvolumes": [(spec(hostPath={"path": "/y"}), "Forbidden spec.persistentvolumesource")],
    "resourcequotas": [(spec(scopes=["BestEffort"]), "Invalid spec.scopes")],
    "storageclasses": [({"provisioner": None}, "Required provisioner", "Invalid provisioner")],
    "csidrivers": [(spec(attachRequired=False), "Invalid spec.attachedRequired")],
    "runtimeclasses": [({"handler": "i"}, "Invalid handler")],
    "ingressclasses": [(NO_SPEC, "Invalid spec.controller", "Required spec.controller")],
}

NODE_TERMS = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
LOAD_BALANCER = {"type": "LoadBalancer", "loadBalancerClass": "example.com/a", "ports": [{"port": 80}]}
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
REPLACED = [  # plural, the spec of the object, the spec of a manifest that replaces it, and the errors
    ("persistentvolumeclaims", {**CLAIM, "dataSource": SNAPSHOT}, {**CLAIM, "dataSource": SNAPSHOT}),
    (
        "persistentvolumeclaims",
        {**CLAIM, "storageClassName": ""},
        {**CLAIM, "storageClassName": "a"},
        "Forbidden spec",
    ),
    (
        "persistentvolumes",
        {**VOLUME, "nodeAffinity": {"required": {"nodeSelectorTerms": NODE_TERMS}}},
        VOLUME,
        "Invalid nodeAffinity",
    ),
    (
        "services",
        LOAD_BALANCER,
        {**LOAD_BALANCER, "loadBalancerClass": "example.com/b"},
        "Invalid spec.loadBalancerClass",
    ),
]


def object_name(api, plural):
    return f"{api.namespace}-{plural[:20]}"


@pytest.mark.parametrize("plural", REJECTED_ON_CREATE)
async def test_create_is_rejected_with_field_errors(api, plural):
    for change, *errors in REJECTED_ON_CREATE[plural]:
        obj = new_object(plural, object_name(api, plural), change)
        code, body = await send(api, "POST", collection_path(api, plural), obj, dryRun="All")
        assert (change, code) == (change, 422), body
        assert (change, field_errors(body)) == (change, errors)


@pytest.mark.parametrize("plural", REJECTED_ON_UPDATE)
async def test_update_is_rejected_with_field_errors(api, plural):
    path, name = collection_path(api, plural), object_name(api, plural)
    code, body = await send(api, "POST", path, new_object(plural, name))
    assert code == 201, body
    try:
        for change, *errors in REJECTED_ON_UPDATE[plural]:
            code, body = await send(api, "PATCH", f"{path}/{name}", change, MERGE_PATCH)
            assert (change, code) == (change, 422), body
            assert (change, field_errors(body)) == (change, errors)
    finally:
        await send(api, "DELETE", f"{path}/{name}", {})


@pytest.mark.parametrize("row", REPLACED, ids=[f"{row[0]}-{index}" for index, row in enumerate(REPLACED)])
async def test_put_of_a_manifest_without_server_fields(api, row):
    plural, created, replaced, *errors = row
    path, name = collection_path(api, plural), object_name(api, plural)
    code, body = await send(api, "POST", path, {"metadata": {"name": name}, "spec": created})
    assert code == 201, body
    try:
        code, body = await send(api, "PUT", f"{path}/{name}", {"metadata": {"name": name}, "spec": replaced})
        assert (code, field_errors(body)) == (422 if errors else 200, errors), body
    finally:
        await send(api, "DELETE", f"{path}/{name}", {})


async def test_disruption_budget_accepts_any_name_that_fits_in_a_path(api):
    path = f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets"
    code, body = await send(api, "POST", path, {"metadata": {"name": "Any_Name"}, "spec": {}}, dryRun="All")
    assert code == 201, body


async def test_disruption_budget_status_requires_complete_conditions(api):
    path = f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets"
    await send(api, "POST", path, {"metadata": {"name": "b"}, "spec": {"selector": {}}})
    change = {"status": {"conditions": [{"type": "A", "status": "X"}]}}
    code, body = await send(api, "PATCH", f"{path}/b/status", change, MERGE_PATCH)
    assert (code, field_errors(body)) == (
        422,
        [
            "NotSupported status.conditions[0].status",
            "Required status.conditions[0].lastTransitionTime",
            "Required status.conditions[0].reason",
        ],
    )
