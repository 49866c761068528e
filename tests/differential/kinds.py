"""Kinds to write, and draws of objects of them that a server mostly accepts."""

import random
from typing import Any

from . import schemas

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "0b0e9b1c-0d0f-4c52-9c53-9a2b5d1c0f01"}


class Kind:
    """A kind, and a draw of partial objects of it that a server mostly accepts."""

    scaled = False
    namespaced = True
    generated = 0  # names that the server is asked to make
    valid = True  # a server takes what is drawn: where it may not, the name it generates would be in the refusal
    status: tuple[dict[str, Any], ...] = ()  # draws of a status; none: the kind has none

    def __init__(self, chance: random.Random, api_version: str, plural: str, kind: str) -> None:
        self.chance = chance
        self.api_version, self.kind = api_version, kind
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        self.path = f"{root}/namespaces/{{ns}}/{plural}" if self.namespaced else f"{root}/{plural}"
        self.name = "w" if self.namespaced else "w-{id}"  # of the object that is written: a server is for many runs

    def object(self, name: str = "") -> dict[str, Any]:
        chance = self.chance
        metadata: dict[str, Any] = {"name": name or self.name}
        if chance.random() < 0.1:
            owner = {**OWNER, **self.some(controller=True, blockOwnerDeletion=False)}
            metadata["ownerReferences"] = [owner] * chance.choice([1, 1, 2])
        if chance.random() < 0.4:
            metadata["labels"] = self.texts(("l1", "l2", "l3"))
        if chance.random() < 0.3:
            metadata["annotations"] = self.texts(("a1", "a2", "example.com/a3"))
        if chance.random() < 0.15:
            metadata["finalizers"] = chance.sample(["example.com/f1", "example.com/f2"], chance.randint(0, 2))
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **self.body()}

    def texts(self, names: tuple[str, ...]) -> dict[str, str]:
        return {
            name: self.chance.choice("xyz") for name in self.chance.sample(names, self.chance.randint(0, len(names)))
        }

    def bytes(self) -> dict[str, str]:
        return {"b": self.chance.choice(["eA==", "eQ=="])}

    def some(self, **parts: Any) -> dict[str, Any]:
        """Some of these parts; a function is called for its part."""
        return {name: part() if callable(part) else part for name, part in parts.items() if self.chance.random() < 0.5}

    def several(self, one: Any, names: list[Any], most: int = 3) -> list[Any]:
        return [one(name) for name in self.chance.sample(names, self.chance.randint(0, min(most, len(names))))]

    def body(self) -> dict[str, Any]:
        raise NotImplementedError


class ConfigMap(Kind):
    def body(self) -> dict[str, Any]:
        return self.some(
            data=lambda: self.texts(("k1", "k2", "k3")), binaryData=lambda: {"b": self.chance.choice(["eA==", "eQ=="])}
        )


class Secret(Kind):
    def body(self) -> dict[str, Any]:
        return self.some(
            data=lambda: {"d": self.chance.choice(["eA==", "eQ=="])}, stringData=lambda: self.texts(("s1", "s2"))
        )


class ServiceAccount(Kind):
    def body(self) -> dict[str, Any]:
        named = lambda name: {"name": name}  # noqa: E731
        return self.some(
            secrets=lambda: self.several(named, ["s1", "s2", "s3"]),
            imagePullSecrets=lambda: self.several(named, ["p1", "p2"]),
            automountServiceAccountToken=lambda: self.chance.choice([True, False]),
        )


class Role(Kind):
    def body(self) -> dict[str, Any]:
        rule = lambda verb: {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}  # noqa: E731
        return self.some(rules=lambda: self.several(rule, ["get", "list", "watch"]))


class Service(Kind):
    status = ({"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}},)

    def body(self) -> dict[str, Any]:
        chance = self.chance

        def port(number: int) -> dict[str, Any]:
            made = {"port": number, "name": f"p{number}", **self.some(targetPort=lambda: chance.choice([80, "http"]))}
            return {**made, **self.some(protocol="TCP")}

        # With a selector: a headless Service without one gets address families that its next write is refused for.
        spec = {
            "clusterIP": "None",
            "ports": self.several(port, [80, 443, 8080]),
            "selector": {"s": chance.choice("xyz")},
        }
        return {"spec": {**spec, **self.some(publishNotReadyAddresses=lambda: chance.choice([True, False]))}}


class Deployment(Kind):
    scaled = True
    status = ({"replicas": 1, "observedGeneration": 1}, {"conditions": [{"type": "Available", "status": "True"}]})

    def body(self) -> dict[str, Any]:
        chance = self.chance
        env = lambda name: {"name": name, **({"value": chance.choice("xyz")} if chance.random() < 0.8 else {})}  # noqa: E731
        quantity = lambda: chance.choice(["1", "1000m", "2"])  # noqa: E731

        def port(number: int) -> dict[str, Any]:
            return {"containerPort": number, **self.some(name=f"p{number}", protocol="TCP")}

        def container(name: str) -> dict[str, Any]:
            return {
                "name": name,
                "image": chance.choice(["i:1", "i:2"]),
                **self.some(
                    env=lambda: self.several(env, ["E1", "E2", "E3"]),
                    args=lambda: chance.choice([["a"], ["b"], []]),
                    ports=lambda: self.several(port, [80, 443]),
                    resources=lambda: {"limits": self.some(cpu=quantity, memory="1Gi")},
                    securityContext=lambda: self.some(runAsUser=1, privileged=False),
                ),
            }

        pod = {
            "containers": self.several(container, ["c1", "c2"]) or [container("c1")],
            **self.some(
                terminationGracePeriodSeconds=lambda: chance.choice([1, 30]),
                nodeSelector=lambda: self.texts(("n1", "n2")),
                tolerations=lambda: chance.choice([[], [{"key": "k", "operator": "Exists"}]]),
                volumes=lambda: self.several(lambda name: {"name": name, "emptyDir": {}}, ["v1", "v2"]),
            ),
        }
        spec = {
            "selector": {"matchLabels": {"app": "w"}},
            "template": {"metadata": {"labels": {"app": "w", **self.texts(("t",))}}, "spec": pod},
            **self.some(replicas=lambda: chance.choice([0, 1, 2]), paused=lambda: chance.choice([True, False])),
        }
        return {
            "spec": {
                **spec,
                **self.some(strategy=lambda: chance.choice([{"type": "Recreate"}, {"type": "RollingUpdate"}])),
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
        kept = {key: spec[key] for key in ("selector", "template", "replicas") if key in spec}
        return {"spec": {**kept, "serviceName": "s", **self.some(podManagementPolicy="Parallel", minReadySeconds=2)}}


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
        return {"spec": {**{key: spec[key] for key in ("selector", "template")}, **self.some(minReadySeconds=2)}}


class Job(Deployment):
    scaled = False
    valid = False  # labels repeat its name
    status = ({"active": 1}, {"succeeded": 1, "failed": 2})

    def body(self) -> dict[str, Any]:
        pod = super().body()["spec"]["template"]["spec"]
        made = {"template": {"spec": {**pod, "restartPolicy": self.chance.choice(["Never", "OnFailure"])}}}
        number = lambda: self.chance.choice([1, 2])  # noqa: E731
        some = self.some(parallelism=number, completions=number, backoffLimit=number, suspend=True)
        return {"spec": {**made, **some, **self.some(ttlSecondsAfterFinished=number)}}


class CronJob(Job):
    status = ({"lastScheduleTime": "2024-01-02T03:04:05Z"},)

    def body(self) -> dict[str, Any]:
        template = {"spec": super().body()["spec"]}
        schedule = self.chance.choice(["* * * * *", "@daily", "*/5 1 * * 1"])
        some = self.some(suspend=False, concurrencyPolicy="Forbid", successfulJobsHistoryLimit=1)
        return {"spec": {"schedule": schedule, "jobTemplate": template, **some}}


class Ingress(Kind):
    status = ({"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}},)

    def body(self) -> dict[str, Any]:
        backend = {"service": {"name": "s", "port": self.chance.choice([{"number": 80}, {"name": "http"}])}}
        path = {"path": "/", "pathType": self.chance.choice(["Prefix", "Exact"]), "backend": backend}
        rules = [{"host": self.chance.choice(["a.example.com", "*.example.com"]), "http": {"paths": [path]}}]
        return {"spec": self.some(ingressClassName="c", tls=[{"hosts": ["a.example.com"]}]) | {"rules": rules}}


class NetworkPolicy(Kind):
    def body(self) -> dict[str, Any]:
        peer = {"podSelector": {"matchLabels": self.texts(("p",))}}
        rules = self.some(ingress=[{"from": [peer]}], egress=[{"ports": [{"port": self.chance.choice([80, "http"])}]}])
        return {"spec": {"podSelector": {}, **rules}}


class DisruptionBudget(Kind):
    status = ({"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1},)

    def body(self) -> dict[str, Any]:
        return {
            "spec": {"selector": {"matchLabels": self.texts(("p",))}, "minAvailable": self.chance.choice([1, "50%"])}
        }


class Autoscaler(Kind):
    status = ({"currentReplicas": 1, "desiredReplicas": 2},)

    def body(self) -> dict[str, Any]:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
        }
        if self.api_version.endswith("v1"):
            return {
                "spec": {"scaleTargetRef": target, "maxReplicas": 3, **self.some(targetCPUUtilizationPercentage=50)}
            }
        return {"spec": {"scaleTargetRef": target, "maxReplicas": 3, **self.some(minReplicas=2, metrics=[metric])}}


class Claim(Kind):
    status = ({"phase": "Bound", "capacity": {"storage": "1Gi"}},)

    def body(self) -> dict[str, Any]:
        wanted = {"requests": {"storage": self.chance.choice(["1Gi", "1024Mi", "2Gi"])}}
        modes = [self.chance.choice(["ReadWriteOnce", "ReadOnlyMany"])]
        return {
            "spec": {
                "accessModes": modes,
                "resources": wanted,
                **self.some(storageClassName="fast", volumeMode="Block"),
            }
        }


class Lease(Kind):
    def body(self) -> dict[str, Any]:
        when = "2024-01-02T03:04:05.123456Z"
        return {
            "spec": self.some(holderIdentity=lambda: self.chance.choice("xy"), leaseDurationSeconds=15, renewTime=when)
        }


class EndpointSlice(Kind):
    def body(self) -> dict[str, Any]:
        endpoint = lambda ip: {"addresses": [ip], **self.some(conditions={"ready": True}, hostname="h")}  # noqa: E731
        ports = self.some(name="http", port=80, protocol="TCP")
        made = self.several(endpoint, ["10.0.1.1", "10.0.1.2"])
        return {"addressType": "IPv4", "endpoints": made, "ports": [ports]}


class Quota(Kind):
    status = ({"hard": {"pods": "1"}, "used": {"pods": "0"}},)

    def body(self) -> dict[str, Any]:
        return {"spec": {"hard": {"configmaps": self.chance.choice(["100", "1e2"]), "cpu": "1000m"}}}


class Event(Kind):
    def body(self) -> dict[str, Any]:
        involved = {"kind": "Pod", "namespace": "{ns}", "name": "p"}
        return {"involvedObject": involved, **self.some(reason="R", message="m", type="Normal", count=2)}


class Custom(Kind):
    """A custom kind of the pool at one of its versions."""

    def __init__(self, chance: random.Random, definition: dict[str, Any], version: dict[str, Any]) -> None:
        self.namespaced = definition["scope"] == "Namespaced"
        super().__init__(chance, f"{{group}}/{version['name']}", "widgets", "Widget")
        self.definition = definition
        self.root = version["schema"]["openAPIV3Schema"]["properties"]
        self.valid = False
        self.wrong = chance.choice([0, 0, 0.02, 0.08])
        below = version.get("subresources") or {}
        self.scaled = "scale" in below
        if "status" in below:
            self.status = tuple(schemas.value(chance, self.root["status"], self.wrong) for _ in range(3))

    def body(self) -> dict[str, Any]:
        made = {name: schemas.value(self.chance, part, self.wrong) for name, part in self.root.items()}
        made = {name: part for name, part in made.items() if name == "spec" or self.chance.random() < 0.4}
        if self.chance.random() < self.wrong:
            made["stray"] = 1
        return made


class Binding(Kind):
    def body(self) -> dict[str, Any]:
        subject = lambda name: {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}  # noqa: E731
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        return {"roleRef": role, **self.some(subjects=lambda: self.several(subject, ["u1", "u2"]))}


class LimitRange(Kind):
    def body(self) -> dict[str, Any]:
        limit = {"type": "Container", **self.some(default={"cpu": "1"}, max={"cpu": "2"}, min={"memory": "1Mi"})}
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


class Endpoints(Kind):
    def body(self) -> dict[str, Any]:
        address = lambda ip: {"ip": ip, **self.some(hostname="h")}  # noqa: E731
        ports = [{"port": 80, **self.some(name="http", protocol="TCP")}]
        subset = {"addresses": self.several(address, ["10.0.1.1", "10.0.1.2"]) or [address("10.0.1.3")], "ports": ports}
        return self.some(subsets=[subset])


class Namespace(Kind):
    namespaced = False
    valid = False  # a label repeats its name
    status = ({"phase": "Active"}, {"conditions": [{"type": "NamespaceDeletionContentFailure", "status": "False"}]})

    def body(self) -> dict[str, Any]:
        return self.some(spec=lambda: {"finalizers": ["kubernetes"]})


class Node(Kind):
    namespaced = False
    status = (
        {"capacity": {"cpu": "1000m"}, "phase": "Running"},
        {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "Hostname", "address": "h"}]},
    )

    def body(self) -> dict[str, Any]:
        taint = lambda key: {"key": key, "effect": self.chance.choice(["NoSchedule", "NoExecute"])}  # noqa: E731
        some = self.some(unschedulable=True, taints=lambda: self.several(taint, ["k1", "k2"]), podCIDR="10.1.0.0/24")
        return {"spec": some}


class Volume(Kind):
    namespaced = False
    status = ({"phase": "Available"}, {"phase": "Failed", "message": "m", "reason": "R"})

    def body(self) -> dict[str, Any]:
        spec = {
            "capacity": {"storage": self.chance.choice(["1Gi", "1024Mi"])},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
        }
        more = self.some(storageClassName="fast", persistentVolumeReclaimPolicy="Retain", mountOptions=["ro"])
        return {"spec": {**spec, **more}}


class ClusterRole(Role):
    namespaced = False

    def body(self) -> dict[str, Any]:
        labels = {"matchLabels": {"example.com/to": self.chance.choice("xy")}}
        return {**super().body(), **self.some(aggregationRule={"clusterRoleSelectors": [labels]})}


class ClusterBinding(Binding):
    namespaced = False


class StorageClass(Kind):
    namespaced = False

    def body(self) -> dict[str, Any]:
        mode = self.chance.choice(["Immediate", "WaitForFirstConsumer"])
        some = self.some(volumeBindingMode=mode, allowVolumeExpansion=True, parameters=self.texts(("p1", "p2")))
        return {"provisioner": "example.com/p", **some}


class PriorityClass(Kind):
    namespaced = False

    def body(self) -> dict[str, Any]:
        return {"value": self.chance.choice([1, 1, 2]), **self.some(description="d", preemptionPolicy="Never")}


class IngressClass(Kind):
    namespaced = False

    def body(self) -> dict[str, Any]:
        parameters = {"kind": "P", "name": "p", "apiGroup": "example.com"}
        return {"spec": {"controller": "example.com/c", **self.some(parameters=parameters)}}


class Driver(Kind):
    namespaced = False

    def body(self) -> dict[str, Any]:
        modes = lambda: self.chance.sample(["Persistent", "Ephemeral"], 1)  # noqa: E731
        return {"spec": self.some(attachRequired=False, podInfoOnMount=True, volumeLifecycleModes=modes)}


CLUSTER = (
    (Namespace, "v1", "namespaces", "Namespace"),
    (Node, "v1", "nodes", "Node"),
    (Volume, "v1", "persistentvolumes", "PersistentVolume"),
    (ClusterRole, "rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole"),
    (ClusterBinding, "rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding"),
    (StorageClass, "storage.k8s.io/v1", "storageclasses", "StorageClass"),
    (PriorityClass, "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass"),
    (IngressClass, "networking.k8s.io/v1", "ingressclasses", "IngressClass"),
    (Driver, "storage.k8s.io/v1", "csidrivers", "CSIDriver"),
)
KINDS = (
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
    (DisruptionBudget, "policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    (Autoscaler, "autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    (Autoscaler, "autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    (Claim, "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    (Lease, "coordination.k8s.io/v1", "leases", "Lease"),
    (EndpointSlice, "discovery.k8s.io/v1", "endpointslices", "EndpointSlice"),
    (Quota, "v1", "resourcequotas", "ResourceQuota"),
    (Event, "v1", "events", "Event"),
    (Binding, "rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
    (LimitRange, "v1", "limitranges", "LimitRange"),
    (PodTemplate, "v1", "podtemplates", "PodTemplate"),
    (ReplicationController, "v1", "replicationcontrollers", "ReplicationController"),
    (Endpoints, "v1", "endpoints", "Endpoints"),
)
