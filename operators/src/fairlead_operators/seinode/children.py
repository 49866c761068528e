"""Build the children of a SeiNode, and the SeiNodes of a SeiNodeDeployment."""

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
    """Return the name of the PersistentVolumeClaim with the node's data: its own or the imported one."""
    return str(imported_claim_name(node) or f"data-{node.name}")


def claim_of(node: fl.Object) -> fl.Object | None:
    """Return the PersistentVolumeClaim to create for a node, or None if the node imports an existing one."""
    if imported_claim_name(node):
        return None
    size = (node.spec.get("dataVolume") or {}).get("size") or SIZES.get(mode_of(node), "1Ti")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    claim: fl.Object = fl.PersistentVolumeClaim(volume_of(node), labels={NODE: node.name}, spec=spec)
    return claim


def job_name(node: fl.Object, task: dict[str, Any]) -> str:
    return f"{node.name}-{task['type']}-{task['id'][:8]}"


def job_of(node: fl.Object, plan_id: str, task: dict[str, Any]) -> fl.Object:
    """Return the Job of a task. Its name contains the task id, so a second apply does not start a second Job."""
    labels = {NODE: node.name, PLAN: plan_id}
    container = {
        "name": task["type"],
        "image": task["params"]["image"],
        "args": [task["type"], "--home", HOME, "--chain-id", node.spec["chainId"]],
        "volumeMounts": [{"name": "data", "mountPath": HOME}],
    }
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": [_volume(node)]}
    spec = {"backoffLimit": 3, "template": {"metadata": {"labels": {NODE: node.name}}, "spec": pod}}
    job: fl.Object = fl.Job(job_name(node, task), labels=labels, spec=spec)
    return job


def service_of(node: fl.Object) -> fl.Object:
    ports = [{"name": name, "port": port, "protocol": "TCP"} for name, port in PORTS.items()]
    spec = {"clusterIP": "None", "selector": {NODE: node.name}, "ports": ports}
    service: fl.Object = fl.Service(node.name, labels={NODE: node.name}, spec=spec)
    return service


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
    stateful_set: fl.Object = fl.StatefulSet(node.name, labels={NODE: node.name}, spec=spec)
    return stateful_set


def node_of(deployment: fl.Object, ordinal: int) -> fl.Object:
    """Return the SeiNode number `ordinal` of a SeiNodeDeployment."""
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


def is_rolled_out(stateful_set: fl.Object) -> bool:
    """Return whether the pods of a StatefulSet are ready and have the current template."""
    status = stateful_set.status
    return (
        status.get("observedGeneration") == stateful_set.generation
        and (status.get("readyReplicas") or 0) >= 1
        and (status.get("updatedReplicas") or 0) >= 1
    )


def imported_claim_name(node: fl.Object) -> str | None:
    """Return the name of the existing PersistentVolumeClaim that the spec of a node imports, or None."""
    return ((node.spec.get("dataVolume") or {}).get("import") or {}).get("pvcName")


def _volume(node: fl.Object) -> dict[str, Any]:
    return {"name": "data", "persistentVolumeClaim": {"claimName": volume_of(node)}}
