"""Tests of the warnings of a server. Both servers must agree with each row of the tables."""

import json

from fairlead.api.requests import HttpRequest

from .objects import CLAIM, POD, VOLUME, collection_path, merge, spec

SPECS = {
    "pods": POD,
    "persistentvolumeclaims": CLAIM,
    "persistentvolumes": VOLUME,
    "services": {"ports": [{"port": 80}]},
}
LATER = "preferredDuringSchedulingIgnoredDuringExecution"
OLD_LABEL = "beta.kubernetes.io/os"
USE_INSTEAD = 'deprecated since v1.14; use "kubernetes.io/os" instead'
NO_SELECTOR = "a null labelSelector results in matching no pod"
OLD_LABEL_TERM = {"matchExpressions": [{"key": OLD_LABEL, "operator": "In", "values": ["a b"]}]}
CLASS = "volume.beta.kubernetes.io/storage-class"
NODES, PODS = f"spec.affinity.nodeAffinity.{LATER}[0].preference.matchExpressions[0]", "spec.affinity.podAffinity"
FRACTION = 'fractional byte value "100m" is invalid, must be an integer'
SECOND_SECRET = "spec.imagePullSecrets[1].name"
WARNED = [  # plural, a change of a valid object, and how the warnings start
    ("pods", spec(nodeSelector={OLD_LABEL: "linux"}), [f"spec.nodeSelector[{OLD_LABEL}]: {USE_INSTEAD}"]),
    (
        "pods",
        spec(affinity={"nodeAffinity": {LATER: [{"weight": 1, "preference": OLD_LABEL_TERM}]}}),
        [f"{NODES}.key: {OLD_LABEL} is {USE_INSTEAD}", f"{NODES}.values[0]: a b is invalid, a valid label"],
    ),
    (
        "pods",
        spec(affinity={"podAffinity": {LATER: [{"weight": 1, "podAffinityTerm": {"topologyKey": "a"}}]}}),
        [f"{PODS}.{LATER}[0].podAffinityTerm.labelSelector: {NO_SELECTOR}"],
    ),
    (
        "pods",
        spec(imagePullSecrets=[{"name": "a"}, {"name": "a"}, {}]),
        [f'{SECOND_SECRET}: duplicate name "a"', 'spec.imagePullSecrets[2].name: invalid empty name ""'],
    ),
    (
        "pods",
        spec(containers=[{**POD["containers"][0], "resources": {"limits": {"memory": "100m"}}}]),
        [f"spec.containers[0].resources.{part}[memory]: {FRACTION}" for part in ("limits", "requests")],
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


async def test_create_returns_warnings(api):
    for plural, change, expected in WARNED:
        obj = merge({"metadata": {"name": f"{api.namespace}-{plural[:20]}"}, "spec": SPECS[plural]}, change)
        response = await api.transport().request(
            HttpRequest(
                "POST",
                collection_path(api, plural),
                query={"dryRun": "All"},
                headers={"Content-Type": "application/json"},
                body=json.dumps(obj).encode(),
            )
        )
        assert response.status == 201, response.body
        texts = [warning.partition('"')[2].replace('\\"', '"') for warning in response.warnings]
        assert [warning[: len(start)] for warning, start in zip(texts, expected, strict=True)] == expected
