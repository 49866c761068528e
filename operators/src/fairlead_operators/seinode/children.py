"""What a node consists of: pure functions from a SeiNode to its children."""

from typing import Any

import fairlead as fl
from fairlead_operators.seinode.kinds import DEPLOYMENT, DEPLOYMENT_UID, NODE, ORDINAL, PLAN, REVISION, SeiNode
from fairlead_operators.seinode.plans import digest

MODES = ("fullNode", "archive", "replayer", "validator")
PORTS = {"p2p": 26656, "rpc": 26657, "metrics": 26660}
SIZES = {"archive": "4Ti", "replayer": "2Ti"}
HOME = "/sei"


def mode_of(node: fl.Object) -> str:
    return next(mode for mode in MODES if mode in node.spec)


def volume_of(node: fl.Object) -> str:
    """The claim with the node's data: its own, or the one that it was told to take."""
    return str(imported_claim(node) or f"data-{node.name}")


def claim_of(node: fl.Object) -> fl.Object | None:
    """The claim to make; none when an existing one is used."""
    if imported_claim(node):
        return None
    size = (node.spec.get("dataVolume") or {}).get("size") or SIZES.get(mode_of(node), "1Ti")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    made: fl.Object = fl.PersistentVolumeClaim(volume_of(node), labels={NODE: node.name}, spec=spec)
    return made


def job_name(node: fl.Object, task: dict[str, Any]) -> str:
    return f"{node.name}-{task['type']}-{task['id'][:8]}"


def job_of(node: fl.Object, plan_id: str, task: dict[str, Any]) -> fl.Object:
    """A task that runs for a while: its name follows from its id, so it is submitted once however often."""
    labels = {NODE: node.name, PLAN: plan_id}
    container = {
        "name": task["type"],
        "image": task["params"]["image"],
        "args": [task["type"], "--home", HOME, "--chain-id", node.spec["chainId"]],
        "volumeMounts": [{"name": "data", "mountPath": HOME}],
    }
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": [_volume(node)]}
    spec = {"backoffLimit": 3, "template": {"metadata": {"labels": {NODE: node.name}}, "spec": pod}}
    made: fl.Object = fl.Job(job_name(node, task), labels=labels, spec=spec)
    return made


def service_of(node: fl.Object) -> fl.Object:
    ports = [{"name": name, "port": port, "protocol": "TCP"} for name, port in PORTS.items()]
    spec = {"clusterIP": "None", "selector": {NODE: node.name}, "ports": ports}
    made: fl.Object = fl.Service(node.name, labels={NODE: node.name}, spec=spec)
    return made


def stateful_set_of(node: fl.Object) -> fl.Object:
    labels = {**(node.spec.get("podLabels") or {}), NODE: node.name}
    container: dict[str, Any] = {
        "name": "seid",
        "image": node.spec["image"],
        "env": [
            {"name": "SEI_CHAIN_ID", "value": node.spec["chainId"]},
            {"name": "SEI_MODE", "value": mode_of(node)},
            {"name": "SEI_PEERS", "value": ",".join(node.spec.get("peers") or ())},
            *({"name": name, "value": value} for name, value in sorted((node.spec.get("overrides") or {}).items())),
        ],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        "volumeMounts": [{"name": "data", "mountPath": HOME}],
    }
    if node.spec.get("entrypoint"):
        container["command"] = node.spec["entrypoint"]
    spec = {
        "replicas": 1,
        "serviceName": node.name,
        "selector": {"matchLabels": {NODE: node.name}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [_volume(node)]}},
    }
    made: fl.Object = fl.StatefulSet(node.name, labels={NODE: node.name}, spec=spec)
    return made


def node_of(deployment: fl.Object, ordinal: int) -> fl.Object:
    """The SeiNode at this place of a deployment."""
    template = deployment.spec["template"]
    metadata = template.get("metadata") or {}
    labels = {
        **(metadata.get("labels") or {}),
        DEPLOYMENT: deployment.name,
        DEPLOYMENT_UID: deployment.uid,
        ORDINAL: str(ordinal),
        REVISION: digest(template),
    }
    return SeiNode(
        f"{deployment.name}-{ordinal}", labels=labels, annotations=metadata.get("annotations"), spec=template["spec"]
    )


def rolled_out(stateful_set: fl.Object) -> bool:
    """Whether its pods are ready, and are of the newest template."""
    status = stateful_set.status
    return (
        status.get("observedGeneration") == stateful_set.generation
        and (status.get("readyReplicas") or 0) >= 1
        and (status.get("updatedReplicas") or 0) >= 1
    )


def imported_claim(node: fl.Object) -> str | None:
    """The claim that the node was told to take."""
    return ((node.spec.get("dataVolume") or {}).get("import") or {}).get("pvcName")


def _volume(node: fl.Object) -> dict[str, Any]:
    return {"name": "data", "persistentVolumeClaim": {"claimName": volume_of(node)}}
