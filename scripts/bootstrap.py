"""Write src/fairlead/server/authorization/bootstrap.json: the default roles of a real server that clients need.

python scripts/bootstrap.py URL TOKEN

Use a server without a controller manager, so that its aggregated roles are still empty.
"""

import json
import ssl
import sys
import urllib.request
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "fairlead" / "server" / "authorization" / "bootstrap.json"
NOTICE = "Default roles and bindings of Kubernetes v1.36.4 as its API answers them; Kubernetes is under Apache-2.0."
EXCLUDED_PREFIXES = (
    "system:controller:",
    "system:kube",
    "system:node",
    "system:certificates",
    "system:volume",
    "system:pers",
)
EXCLUDED_PREFIXES += ("system:heapster",)  # The embedded server does not run these components.


def get(url, token, plural):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    path = f"{url}/apis/rbac.authorization.k8s.io/v1/{plural}?labelSelector=kubernetes.io/bootstrapping=rbac-defaults"
    request = urllib.request.Request(path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=context) as response:
        return json.load(response)["items"]


def main(url, token):
    document = {"notice": NOTICE}
    for plural in ("clusterroles", "clusterrolebindings"):
        items = [i for i in get(url, token, plural) if not i["metadata"]["name"].startswith(EXCLUDED_PREFIXES)]
        for item in items:
            item["metadata"] = {key: item["metadata"][key] for key in ("name", "labels", "annotations")}
        document[plural] = items
    TARGET.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    print({plural: [i["metadata"]["name"] for i in document[plural]] for plural in document if plural != "notice"})


if __name__ == "__main__":
    main(*sys.argv[1:3])
