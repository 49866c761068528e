"""Random histories of writers on built-in kinds, as scenarios for the recorder's runner."""

import random
from typing import Any

API = "/api/v1/namespaces/{ns}"


class Kind:
    """A built-in kind, and a draw of partial objects of it that a server accepts."""

    def __init__(self, chance: random.Random, api_version: str, kind: str, path: str) -> None:
        self.chance = chance
        self.api_version, self.kind = api_version, kind
        self.path = path

    def object(self) -> dict[str, Any]:
        chance = self.chance
        metadata: dict[str, Any] = {"name": "w"}
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


KINDS = (
    (ConfigMap, "v1", "ConfigMap", f"{API}/configmaps"),
    (Secret, "v1", "Secret", f"{API}/secrets"),
    (ServiceAccount, "v1", "ServiceAccount", f"{API}/serviceaccounts"),
    (Service, "v1", "Service", f"{API}/services"),
    (Role, "rbac.authorization.k8s.io/v1", "Role", "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"),
    (Deployment, "apps/v1", "Deployment", "/apis/apps/v1/namespaces/{ns}/deployments"),
)


def scenario(seed: int) -> dict[str, Any]:
    """Several managers write one object of a built-in kind in every way there is."""
    chance = random.Random(seed)
    made, *facts = chance.choice(KINDS)
    kind = made(chance, *facts)
    path = f"{kind.path}/w"
    steps: list[dict[str, Any]] = []
    for _ in range(chance.randint(3, 9)):
        last = str(len(steps) - 1) if steps else None
        steps.append({"query": {"fieldManager": chance.choice(["ma", "mb", "mc"])}, "path": path, **write(kind, last)})
        if steps[-1].pop("force", False):
            steps[-1]["query"]["force"] = "true"
        steps.append({"do": "GET", "path": path})
    freed = {"metadata": {"finalizers": None}}
    steps.append({"do": "PATCH", "path": path, "type": "application/merge-patch+json", "body": freed})
    return {"name": f"{kind.kind}-{seed}", "steps": steps}


def write(kind: Kind, last: str | None) -> dict[str, Any]:
    """A random write; `last` is the step that last read the object."""
    chance = kind.chance
    draw = chance.random()
    if draw < 0.45 or (last is None and draw < 0.7):
        body = kind.object()
        return {"do": "PATCH", "type": "application/apply-patch+yaml", "body": body, "force": chance.random() < 0.5}
    if last is None:
        return {"do": "POST", "path": kind.path, "body": kind.object()}
    if draw < 0.65:
        changes: dict[str, Any] = {"from": last, f"metadata.labels.{chance.choice('pq')}": chance.choice("xyz")}
        body = kind.body() if chance.random() < 0.6 else {}
        changes.update({name: value for name, value in body.items() if name != "spec"})
        changes.update({f"spec.{name}": value for name, value in (body.get("spec") or {}).items()})
        return {"do": "PUT", "body": {"$set": changes}}
    if draw < 0.85:
        flavour = chance.choice(["merge-patch", "strategic-merge-patch"])
        part = {name: value for name, value in kind.object().items() if name not in ("apiVersion", "kind")}
        return {"do": "PATCH", "type": f"application/{flavour}+json", "body": part}
    operations = [{"op": "add", "path": "/metadata/annotations", "value": {"j": chance.choice("xyz")}}]
    return {"do": "PATCH", "type": "application/json-patch+json", "body": operations}
