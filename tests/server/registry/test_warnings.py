"""What servers warn of: each line holds on the embedded and on the real server."""

import json

from fairlead.api.requests import HttpRequest

from .test_refusals import CLAIM, POD, VOLUME, collection, merged, spec

KINDS = {
    "pods": POD,
    "persistentvolumeclaims": CLAIM,
    "persistentvolumes": VOLUME,
    "services": {"ports": [{"port": 80}]},
}
LATER = "preferredDuringSchedulingIgnoredDuringExecution"
OLD = "beta.kubernetes.io/os"
INSTEAD = 'deprecated since v1.14; use "kubernetes.io/os" instead'
NOTHING = "a null labelSelector results in matching no pod"
WITH_OLD = {"matchExpressions": [{"key": OLD, "operator": "In", "values": ["a b"]}]}
CLASS = "volume.beta.kubernetes.io/storage-class"
NODES, PODS = f"spec.affinity.nodeAffinity.{LATER}[0].preference.matchExpressions[0]", "spec.affinity.podAffinity"
HALF = 'fractional byte value "100m" is invalid, must be an integer'
TWICE = "spec.imagePullSecrets[1].name"
WARNED = [  # what is merged into a good object, and how the warnings begin
    ("pods", spec(nodeSelector={OLD: "linux"}), [f"spec.nodeSelector[{OLD}]: {INSTEAD}"]),
    (
        "pods",
        spec(affinity={"nodeAffinity": {LATER: [{"weight": 1, "preference": WITH_OLD}]}}),
        [f"{NODES}.key: {OLD} is {INSTEAD}", f"{NODES}.values[0]: a b is invalid, a valid label"],
    ),
    (
        "pods",
        spec(affinity={"podAffinity": {LATER: [{"weight": 1, "podAffinityTerm": {"topologyKey": "a"}}]}}),
        [f"{PODS}.{LATER}[0].podAffinityTerm.labelSelector: {NOTHING}"],
    ),
    (
        "pods",
        spec(imagePullSecrets=[{"name": "a"}, {"name": "a"}, {}]),
        [f'{TWICE}: duplicate name "a"', 'spec.imagePullSecrets[2].name: invalid empty name ""'],
    ),
    (
        "pods",
        spec(containers=[{**POD["containers"][0], "resources": {"limits": {"memory": "100m"}}}]),
        [f"spec.containers[0].resources.{part}[memory]: {HALF}" for part in ("limits", "requests")],
    ),
    (
        "pods",
        spec(volumes=[{"name": "v", "rbd": {"monitors": ["a"], "image": "i"}}]),
        ["spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+"],
    ),
    (
        "persistentvolumeclaims",
        {"metadata": {"annotations": {CLASS: "a"}}},
        [f'metadata.annotations[{CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'],
    ),
    (
        "persistentvolumes",
        spec(persistentVolumeReclaimPolicy="Recycle"),
        ["spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated."],
    ),
    (
        "services",
        spec(externalIPs=["1.2.3.4"]),
        ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
    ),
]


async def test_what_is_odd_but_allowed_is_warned_of(api):
    for plural, change, wanted in WARNED:
        obj = merged({"metadata": {"name": f"{api.namespace}-{plural[:20]}"}, "spec": KINDS[plural]}, change)
        answer = await api.transport().request(
            HttpRequest(
                "POST",
                collection(api, plural),
                query={"dryRun": "All"},
                headers={"Content-Type": "application/json"},
                body=json.dumps(obj).encode(),
            )
        )
        assert answer.status == 201, answer.body
        told = [text.partition('"')[2].replace('\\"', '"') for text in answer.warnings]
        assert [text[: len(start)] for text, start in zip(told, wanted, strict=True)] == wanted
