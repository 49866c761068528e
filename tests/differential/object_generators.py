"""Generators of random objects of built-in kinds and custom resources. A server accepts most of these objects."""

import random
from typing import Any

from .schema_generators import generate_value

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "0b0e9b1c-0d0f-4c52-9c53-9a2b5d1c0f01"}


class ObjectGenerator:
    """Generates partial objects of one kind."""

    scaled = False
    namespaced = True
    generated = 0  # how often generateName was used
    valid = True  # False if the server may reject an object, because the error would show a generated name
    status: tuple[dict[str, Any], ...] = ()  # possible statuses; empty if the kind has no status

    def __init__(self, rng: random.Random, api_version: str, plural: str, kind: str) -> None:
        self.rng = rng
        self.api_version, self.kind = api_version, kind
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        self.path = f"{root}/namespaces/{{ns}}/{plural}" if self.namespaced else f"{root}/{plural}"
        self.name = "w" if self.namespaced else "w-{id}"  # Runs share the cluster-scoped names of a server.

    def object(self, name: str = "") -> dict[str, Any]:
        rng = self.rng
        metadata: dict[str, Any] = {"name": name or self.name}
        if rng.random() < 0.1:
            owner = {**OWNER, **self.choose_parts(controller=True, blockOwnerDeletion=False)}
            metadata["ownerReferences"] = [owner] * rng.choice([1, 1, 2])
        if rng.random() < 0.4:
            metadata["labels"] = self.texts(("l1", "l2", "l3"))
        if rng.random() < 0.3:
            metadata["annotations"] = self.texts(("a1", "a2", "example.com/a3"))
        if rng.random() < 0.15:
            metadata["finalizers"] = rng.sample(["example.com/f1", "example.com/f2"], rng.randint(0, 2))
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **self.body()}

    def texts(self, names: tuple[str, ...]) -> dict[str, str]:
        return {name: self.rng.choice("xyz") for name in self.rng.sample(names, self.rng.randint(0, len(names)))}

    def bytes(self) -> dict[str, str]:
        return {"b": self.rng.choice(["eA==", "eQ=="])}

    def choose_parts(self, **optional_fields: Any) -> dict[str, Any]:
        """Return a random selection of these parts. The value of a function is its result."""
        return {
            name: part() if callable(part) else part
            for name, part in optional_fields.items()
            if self.rng.random() < 0.5
        }

    def several(self, build: Any, names: list[Any], max_items: int = 3) -> list[Any]:
        return [build(name) for name in self.rng.sample(names, self.rng.randint(0, min(max_items, len(names))))]

    def body(self) -> dict[str, Any]:
        raise NotImplementedError


class ConfigMap(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        return self.choose_parts(
            data=lambda: self.texts(("k1", "k2", "k3")), binaryData=lambda: {"b": self.rng.choice(["eA==", "eQ=="])}
        )


class Secret(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        return self.choose_parts(
            data=lambda: {"d": self.rng.choice(["eA==", "eQ=="])}, stringData=lambda: self.texts(("s1", "s2"))
        )


class ServiceAccount(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        build_reference = lambda name: {"name": name}  # noqa: E731
        return self.choose_parts(
            secrets=lambda: self.several(build_reference, ["s1", "s2", "s3"]),
            imagePullSecrets=lambda: self.several(build_reference, ["p1", "p2"]),
            automountServiceAccountToken=lambda: self.rng.choice([True, False]),
        )


class Role(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        rule = lambda verb: {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}  # noqa: E731
        return self.choose_parts(rules=lambda: self.several(rule, ["get", "list", "watch"]))


class Service(ObjectGenerator):
    status = ({"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}},)

    def body(self) -> dict[str, Any]:
        rng = self.rng

        def port(number: int) -> dict[str, Any]:
            body = {
                "port": number,
                "name": f"p{number}",
                **self.choose_parts(targetPort=lambda: rng.choice([80, "http"])),
            }
            return {**body, **self.choose_parts(protocol="TCP")}

        # A headless Service without a selector gets address families for which its next write is rejected.
        spec = {
            "clusterIP": "None",
            "ports": self.several(port, [80, 443, 8080]),
            "selector": {"s": rng.choice("xyz")},
        }
        return {"spec": {**spec, **self.choose_parts(publishNotReadyAddresses=lambda: rng.choice([True, False]))}}


class Deployment(ObjectGenerator):
    scaled = True
    status = ({"replicas": 1, "observedGeneration": 1}, {"conditions": [{"type": "Available", "status": "True"}]})

    def body(self) -> dict[str, Any]:
        rng = self.rng
        env = lambda name: {"name": name, **({"value": rng.choice("xyz")} if rng.random() < 0.8 else {})}  # noqa: E731
        quantity = lambda: rng.choice(["1", "1000m", "2"])  # noqa: E731

        def port(number: int) -> dict[str, Any]:
            return {"containerPort": number, **self.choose_parts(name=f"p{number}", protocol="TCP")}

        def container(name: str) -> dict[str, Any]:
            return {
                "name": name,
                "image": rng.choice(["i:1", "i:2"]),
                **self.choose_parts(
                    env=lambda: self.several(env, ["E1", "E2", "E3"]),
                    args=lambda: rng.choice([["a"], ["b"], []]),
                    ports=lambda: self.several(port, [80, 443]),
                    resources=lambda: {"limits": self.choose_parts(cpu=quantity, memory="1Gi")},
                    securityContext=lambda: self.choose_parts(runAsUser=1, privileged=False),
                ),
            }

        pod = {
            "containers": self.several(container, ["c1", "c2"]) or [container("c1")],
            **self.choose_parts(
                terminationGracePeriodSeconds=lambda: rng.choice([1, 30]),
                nodeSelector=lambda: self.texts(("n1", "n2")),
                tolerations=lambda: rng.choice([[], [{"key": "k", "operator": "Exists"}]]),
                volumes=lambda: self.several(lambda name: {"name": name, "emptyDir": {}}, ["v1", "v2"]),
            ),
        }
        spec = {
            "selector": {"matchLabels": {"app": "w"}},
            "template": {"metadata": {"labels": {"app": "w", **self.texts(("t",))}}, "spec": pod},
            **self.choose_parts(replicas=lambda: rng.choice([0, 1, 2]), paused=lambda: rng.choice([True, False])),
        }
        return {
            "spec": {
                **spec,
                **self.choose_parts(strategy=lambda: rng.choice([{"type": "Recreate"}, {"type": "RollingUpdate"}])),
            }
        }


class Pod(Deployment):
    status = ({"phase": "Running", "podIP": "10.1.2.3"}, {"conditions": [{"type": "Ready", "status": "True"}]})

    def body(self) -> dict[str, Any]:
        return {"spec": super().body()["spec"]["template"]["spec"]}


class StatefulSet(Deployment):
    status = ({"replicas": 1, "readyReplicas": 1}, {"replicas": 2, "availableReplicas": 1})

    def body(self) -> dict[str, Any]:
        spec = super().body()["spec"]
        common = {key: spec[key] for key in ("selector", "template", "replicas") if key in spec}
        return {
            "spec": {
                **common,
                "serviceName": "s",
                **self.choose_parts(podManagementPolicy="Parallel", minReadySeconds=2),
            }
        }


class ReplicaSet(StatefulSet):
    def body(self) -> dict[str, Any]:
        spec = super().body()["spec"]
        return {
            "spec": {key: value for key, value in spec.items() if key not in ("serviceName", "podManagementPolicy")}
        }


class DaemonSet(Deployment):
    scaled = False
    status = ({"currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 1, "numberReady": 1},)

    def body(self) -> dict[str, Any]:
        spec = super().body()["spec"]
        return {
            "spec": {**{key: spec[key] for key in ("selector", "template")}, **self.choose_parts(minReadySeconds=2)}
        }


class Job(Deployment):
    scaled = False
    valid = False  # Its labels contain the name.
    status = ({"active": 1}, {"succeeded": 1, "failed": 2})

    def body(self) -> dict[str, Any]:
        pod = super().body()["spec"]["template"]["spec"]
        body = {"template": {"spec": {**pod, "restartPolicy": self.rng.choice(["Never", "OnFailure"])}}}
        number = lambda: self.rng.choice([1, 2])  # noqa: E731
        optional_fields = self.choose_parts(parallelism=number, completions=number, backoffLimit=number, suspend=True)
        return {"spec": {**body, **optional_fields, **self.choose_parts(ttlSecondsAfterFinished=number)}}


class CronJob(Job):
    status = ({"lastScheduleTime": "2024-01-02T03:04:05Z"},)

    def body(self) -> dict[str, Any]:
        template = {"spec": super().body()["spec"]}
        schedule = self.rng.choice(["* * * * *", "@daily", "*/5 1 * * 1"])
        optional_fields = self.choose_parts(suspend=False, concurrencyPolicy="Forbid", successfulJobsHistoryLimit=1)
        return {"spec": {"schedule": schedule, "jobTemplate": template, **optional_fields}}


class Ingress(ObjectGenerator):
    status = ({"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}},)

    def body(self) -> dict[str, Any]:
        backend = {"service": {"name": "s", "port": self.rng.choice([{"number": 80}, {"name": "http"}])}}
        path = {"path": "/", "pathType": self.rng.choice(["Prefix", "Exact"]), "backend": backend}
        rules = [{"host": self.rng.choice(["a.example.com", "*.example.com"]), "http": {"paths": [path]}}]
        return {"spec": self.choose_parts(ingressClassName="c", tls=[{"hosts": ["a.example.com"]}]) | {"rules": rules}}


class NetworkPolicy(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        peer = {"podSelector": {"matchLabels": self.texts(("p",))}}
        rules = self.choose_parts(
            ingress=[{"from": [peer]}], egress=[{"ports": [{"port": self.rng.choice([80, "http"])}]}]
        )
        return {"spec": {"podSelector": {}, **rules}}


class PodDisruptionBudget(ObjectGenerator):
    status = ({"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1},)

    def body(self) -> dict[str, Any]:
        return {"spec": {"selector": {"matchLabels": self.texts(("p",))}, "minAvailable": self.rng.choice([1, "50%"])}}


class HorizontalPodAutoscaler(ObjectGenerator):
    status = ({"currentReplicas": 1, "desiredReplicas": 2},)

    def body(self) -> dict[str, Any]:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
        }
        if self.api_version.endswith("v1"):
            return {
                "spec": {
                    "scaleTargetRef": target,
                    "maxReplicas": 3,
                    **self.choose_parts(targetCPUUtilizationPercentage=50),
                }
            }
        return {
            "spec": {"scaleTargetRef": target, "maxReplicas": 3, **self.choose_parts(minReplicas=2, metrics=[metric])}
        }


class PersistentVolumeClaim(ObjectGenerator):
    status = ({"phase": "Bound", "capacity": {"storage": "1Gi"}},)

    def body(self) -> dict[str, Any]:
        resources = {"requests": {"storage": self.rng.choice(["1Gi", "1024Mi", "2Gi"])}}
        modes = [self.rng.choice(["ReadWriteOnce", "ReadOnlyMany"])]
        return {
            "spec": {
                "accessModes": modes,
                "resources": resources,
                **self.choose_parts(storageClassName="fast", volumeMode="Block"),
            }
        }


class Lease(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        when = "2024-01-02T03:04:05.123456Z"
        return {
            "spec": self.choose_parts(
                holderIdentity=lambda: self.rng.choice("xy"), leaseDurationSeconds=15, renewTime=when
            )
        }


class EndpointSlice(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        endpoint = lambda ip: {"addresses": [ip], **self.choose_parts(conditions={"ready": True}, hostname="h")}  # noqa: E731
        ports = self.choose_parts(name="http", port=80, protocol="TCP")
        body = self.several(endpoint, ["10.0.1.1", "10.0.1.2"])
        return {"addressType": "IPv4", "endpoints": body, "ports": [ports]}


class ResourceQuota(ObjectGenerator):
    status = ({"hard": {"pods": "1"}, "used": {"pods": "0"}},)

    def body(self) -> dict[str, Any]:
        return {"spec": {"hard": {"configmaps": self.rng.choice(["100", "1e2"]), "cpu": "1000m"}}}


class Event(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        involved = {"kind": "Pod", "namespace": "{ns}", "name": "p"}
        return {"involvedObject": involved, **self.choose_parts(reason="R", message="m", type="Normal", count=2)}


class CustomResource(ObjectGenerator):
    """Generates custom resources of one version of a CRD."""

    def __init__(self, rng: random.Random, definition: dict[str, Any], version: dict[str, Any]) -> None:
        self.namespaced = definition["scope"] == "Namespaced"
        super().__init__(rng, f"{{group}}/{version['name']}", "widgets", "Widget")
        self.definition = definition
        self.root = version["schema"]["openAPIV3Schema"]["properties"]
        self.valid = False
        self.invalid = rng.choice([0, 0, 0.02, 0.08])
        subresources = version.get("subresources") or {}
        self.scaled = "scale" in subresources
        if "status" in subresources:
            self.status = tuple(generate_value(rng, self.root["status"], self.invalid) for _ in range(3))

    def body(self) -> dict[str, Any]:
        body = {name: generate_value(self.rng, part, self.invalid) for name, part in self.root.items()}
        body = {name: part for name, part in body.items() if name == "spec" or self.rng.random() < 0.4}
        if self.rng.random() < self.invalid:
            body["stray"] = 1
        return body


class RoleBinding(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        subject = lambda name: {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}  # noqa: E731
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        return {"roleRef": role, **self.choose_parts(subjects=lambda: self.several(subject, ["u1", "u2"]))}


class LimitRange(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        limit = {
            "type": "Container",
            **self.choose_parts(default={"cpu": "1"}, max={"cpu": "2"}, min={"memory": "1Mi"}),
        }
        return {"spec": {"limits": [limit]}}


class PodTemplate(Deployment):
    scaled = False
    status = ()

    def body(self) -> dict[str, Any]:
        return {"template": super().body()["spec"]["template"]}


class ReplicationController(ReplicaSet):
    def body(self) -> dict[str, Any]:
        spec = super().body()["spec"]
        return {"spec": {**spec, "selector": {"app": "w"}}}


class Endpoints(ObjectGenerator):
    def body(self) -> dict[str, Any]:
        address = lambda ip: {"ip": ip, **self.choose_parts(hostname="h")}  # noqa: E731
        ports = [{"port": 80, **self.choose_parts(name="http", protocol="TCP")}]
        subset = {"addresses": self.several(address, ["10.0.1.1", "10.0.1.2"]) or [address("10.0.1.3")], "ports": ports}
        return self.choose_parts(subsets=[subset])


class Namespace(ObjectGenerator):
    namespaced = False
    valid = False  # A label contains the name.
    status = ({"phase": "Active"}, {"conditions": [{"type": "NamespaceDeletionContentFailure", "status": "False"}]})

    def body(self) -> dict[str, Any]:
        return self.choose_parts(spec=lambda: {"finalizers": ["kubernetes"]})


class Node(ObjectGenerator):
    namespaced = False
    status = (
        {"capacity": {"cpu": "1000m"}, "phase": "Running"},
        {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "Hostname", "address": "h"}]},
    )

    def body(self) -> dict[str, Any]:
        taint = lambda key: {"key": key, "effect": self.rng.choice(["NoSchedule", "NoExecute"])}  # noqa: E731
        optional_fields = self.choose_parts(
            unschedulable=True, taints=lambda: self.several(taint, ["k1", "k2"]), podCIDR="10.1.0.0/24"
        )
        return {"spec": optional_fields}


class PersistentVolume(ObjectGenerator):
    namespaced = False
    status = ({"phase": "Available"}, {"phase": "Failed", "message": "m", "reason": "R"})

    def body(self) -> dict[str, Any]:
        spec = {
            "capacity": {"storage": self.rng.choice(["1Gi", "1024Mi"])},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
        }
        optional_fields = self.choose_parts(
            storageClassName="fast", persistentVolumeReclaimPolicy="Retain", mountOptions=["ro"]
        )
        return {"spec": {**spec, **optional_fields}}


class ClusterRole(Role):
    namespaced = False

    def body(self) -> dict[str, Any]:
        labels = {"matchLabels": {"example.com/to": self.rng.choice("xy")}}
        return {**super().body(), **self.choose_parts(aggregationRule={"clusterRoleSelectors": [labels]})}


class ClusterRoleBinding(RoleBinding):
    namespaced = False


class StorageClass(ObjectGenerator):
    namespaced = False

    def body(self) -> dict[str, Any]:
        mode = self.rng.choice(["Immediate", "WaitForFirstConsumer"])
        optional_fields = self.choose_parts(
            volumeBindingMode=mode, allowVolumeExpansion=True, parameters=self.texts(("p1", "p2"))
        )
        return {"provisioner": "example.com/p", **optional_fields}


class PriorityClass(ObjectGenerator):
    namespaced = False

    def body(self) -> dict[str, Any]:
        return {"value": self.rng.choice([1, 1, 2]), **self.choose_parts(description="d", preemptionPolicy="Never")}


class IngressClass(ObjectGenerator):
    namespaced = False

    def body(self) -> dict[str, Any]:
        parameters = {"kind": "P", "name": "p", "apiGroup": "example.com"}
        return {"spec": {"controller": "example.com/c", **self.choose_parts(parameters=parameters)}}


class CSIDriver(ObjectGenerator):
    namespaced = False

    def body(self) -> dict[str, Any]:
        modes = lambda: self.rng.sample(["Persistent", "Ephemeral"], 1)  # noqa: E731
        return {"spec": self.choose_parts(attachRequired=False, podInfoOnMount=True, volumeLifecycleModes=modes)}


CLUSTER_GENERATORS = (
    (Namespace, "v1", "namespaces", "Namespace"),
    (Node, "v1", "nodes", "Node"),
    (PersistentVolume, "v1", "persistentvolumes", "PersistentVolume"),
    (ClusterRole, "rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole"),
    (ClusterRoleBinding, "rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding"),
    (StorageClass, "storage.k8s.io/v1", "storageclasses", "StorageClass"),
    (PriorityClass, "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass"),
    (IngressClass, "networking.k8s.io/v1", "ingressclasses", "IngressClass"),
    (CSIDriver, "storage.k8s.io/v1", "csidrivers", "CSIDriver"),
)
NAMESPACED_GENERATORS = (
    (ConfigMap, "v1", "configmaps", "ConfigMap"),
    (Secret, "v1", "secrets", "Secret"),
    (ServiceAccount, "v1", "serviceaccounts", "ServiceAccount"),
    (Service, "v1", "services", "Service"),
    (Role, "rbac.authorization.k8s.io/v1", "roles", "Role"),
    (Deployment, "apps/v1", "deployments", "Deployment"),
    (ReplicaSet, "apps/v1", "replicasets", "ReplicaSet"),
    (StatefulSet, "apps/v1", "statefulsets", "StatefulSet"),
    (DaemonSet, "apps/v1", "daemonsets", "DaemonSet"),
    (Pod, "v1", "pods", "Pod"),
    (Job, "batch/v1", "jobs", "Job"),
    (CronJob, "batch/v1", "cronjobs", "CronJob"),
    (Ingress, "networking.k8s.io/v1", "ingresses", "Ingress"),
    (NetworkPolicy, "networking.k8s.io/v1", "networkpolicies", "NetworkPolicy"),
    (PodDisruptionBudget, "policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    (HorizontalPodAutoscaler, "autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    (HorizontalPodAutoscaler, "autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    (PersistentVolumeClaim, "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    (Lease, "coordination.k8s.io/v1", "leases", "Lease"),
    (EndpointSlice, "discovery.k8s.io/v1", "endpointslices", "EndpointSlice"),
    (ResourceQuota, "v1", "resourcequotas", "ResourceQuota"),
    (Event, "v1", "events", "Event"),
    (RoleBinding, "rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
    (LimitRange, "v1", "limitranges", "LimitRange"),
    (PodTemplate, "v1", "podtemplates", "PodTemplate"),
    (ReplicationController, "v1", "replicationcontrollers", "ReplicationController"),
    (Endpoints, "v1", "endpoints", "Endpoints"),
)
