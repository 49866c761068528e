"""Write src/fairlead/server/initial_objects/objects.json: the objects that a real server creates when it starts.

python scripts/initial_objects.py

The script starts the real server of `make real`, without a controller manager, so that its aggregated roles are still
empty. Values that differ in each cluster become placeholders, and the two descriptions in prose are ours.
"""

import json
import time
from pathlib import Path

from fairlead.testing.real import VERSION, RealServer

TARGET = Path(__file__).parents[1] / "src" / "fairlead" / "server" / "initial_objects" / "objects.json"
NOTICE = f"Objects of a new server of Kubernetes {VERSION} as its API answers them; Kubernetes is under Apache-2.0."
SETTLE_SECONDS = 15  # the server writes the status of its ServiceCIDR and of its flow schemas a little later
RESOURCES = (
    "/api/v1/configmaps",
    "/api/v1/endpoints",
    "/api/v1/namespaces",
    "/api/v1/services",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/ipaddresses",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
)
DESCRIPTIONS = {
    "system-cluster-critical": "For Pods that the cluster needs and that may run on any node.",
    "system-node-critical": "For Pods that their node needs.",
}
VERSION_OFFSET = 500  # so that no version of an object is near "1", which clients use for "must not exist"
ADDRESS, PORT = "192.0.2.1", 6443  # an address for documentation: nothing of the embedded server listens there


def read_objects(server):
    """Return the documents of all RESOURCES, and the sets of fields that their managedFields refer to by index."""
    fields, kinds = [], {}
    for path in RESOURCES:
        listed = json.loads(server.request("GET", path))
        group, plural = path.split("/")[2], path.rpartition("/")[2]
        items = [compress(item, fields) for item in listed["items"]]
        api_version, kind = listed["apiVersion"], listed["kind"].removesuffix("List")
        table = f"{group}/{plural}" if path.startswith("/apis/") else f"/{plural}"
        kinds[table] = {"apiVersion": api_version, "kind": kind, "items": items}
    return kinds, fields


def compress(item, fields):
    """Return an object without the values that the embedded server sets, and with placeholders."""
    metadata = item["metadata"]
    metadata["managedFields"] = [compress_entry(entry, fields) for entry in metadata["managedFields"]]
    metadata["resourceVersion"] = str(VERSION_OFFSET + int(metadata["resourceVersion"]))
    del metadata["uid"], metadata["creationTimestamp"]
    if "description" in item:
        item["description"] = DESCRIPTIONS[metadata["name"]]
    for condition in (item.get("status") or {}).get("conditions", ()):
        condition["lastTransitionTime"] = "$NOW"
    if "since" in item.get("data", {}):
        item["data"]["since"] = "$TODAY"
    return item


def compress_entry(entry, fields):
    if entry["fieldsV1"] not in fields:
        fields.append(entry["fieldsV1"])
    return [entry["manager"], entry["operation"], fields.index(entry["fieldsV1"]), entry.get("subresource", "")]


def set_addresses(document):
    """Replace the addresses of the real server by placeholders, and its own address by ADDRESS and PORT."""
    service = document["/services"]["items"][0]
    service["spec"]["ports"][0]["targetPort"] = PORT
    subset = document["/endpoints"]["items"][0]["subsets"][0]
    subset["addresses"][0]["ip"], subset["ports"][0]["port"] = ADDRESS, PORT
    endpoint_slice = document["discovery.k8s.io/endpointslices"]["items"][0]
    endpoint_slice["endpoints"][0]["addresses"], endpoint_slice["ports"][0]["port"] = [ADDRESS], PORT
    text = json.dumps(document, separators=(",", ":"))
    return text.replace("10.0.0.0/24", "$SERVICE_RANGE").replace("10.0.0.1", "$SERVICE_ADDRESS")


def main():
    with RealServer() as server:
        time.sleep(SETTLE_SECONDS)
        kinds, fields = read_objects(server)
    document = {"notice": NOTICE, "fields": fields, **kinds}
    TARGET.write_text(set_addresses(document) + "\n")
    print({table: len(listed["items"]) for table, listed in kinds.items()})


if __name__ == "__main__":
    main()
