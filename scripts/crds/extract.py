"""Extract third-party CustomResourceDefinitions from pinned Go modules, without their descriptions.

    python scripts/crds/extract.py

Writes one JSON file per CRD into the folder of the operator that uses it. Go verifies the checksum of each
module. Both projects are under the Apache License 2.0. The files keep only names, types, defaults and rules.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
GATEWAY_API = ("sigs.k8s.io/gateway-api", "v1.2.1", "h1:fZZ/+RyRb+Y5tGkwxFKuYuSRQHu9dZtbjenblleOLHM=")
ENVOY_GATEWAY = ("github.com/envoyproxy/gateway", "v1.3.3", "h1:b8LX1eH4vFpvaSEsU7uOnXGvQkMZ3ysQ3M9JNlwD6Wc=")

STANDARD = "config/crd/standard/gateway.networking.k8s.io_"
GENERATED = "charts/gateway-helm/crds/generated/gateway.envoyproxy.io_"
CRDS = [
    (GATEWAY_API, STANDARD + "gatewayclasses.yaml"),
    (GATEWAY_API, STANDARD + "gateways.yaml"),
    (GATEWAY_API, STANDARD + "httproutes.yaml"),
    (ENVOY_GATEWAY, GENERATED + "httproutefilters.yaml"),
    (ENVOY_GATEWAY, GENERATED + "envoypatchpolicies.yaml"),
]
TARGET = ROOT / "operators" / "src" / "fairlead_operators" / "httpproxy" / "crds"


def drop_descriptions(node):
    """Return the schema without descriptions. A property that is *named* description stays: it is a schema."""
    if isinstance(node, dict):
        return {k: drop_descriptions(v) for k, v in node.items() if not (k == "description" and isinstance(v, str))}
    return [drop_descriptions(item) for item in node] if isinstance(node, list) else node


def download(module, version, checksum):
    with tempfile.TemporaryDirectory() as empty_folder:
        command = ["go", "mod", "download", "-json", f"{module}@{version}"]
        decoded = json.loads(
            subprocess.run(command, cwd=empty_folder, check=True, capture_output=True, text=True).stdout
        )
    if decoded["Sum"] != checksum:
        sys.exit(f"{module} {version} has the sum {decoded['Sum']}, not {checksum}: it is not the reviewed version")
    return Path(decoded["Dir"])


def main():
    folders = {source: download(*source) for source in {source for source, _ in CRDS}}
    for source, path in CRDS:
        crd = drop_descriptions(yaml.safe_load((folders[source] / path).read_text()))
        crd.pop("status", None)
        crd["metadata"]["annotations"]["fairlead.dev/extracted-from"] = f"{source[0]}@{source[1]}"
        target = TARGET / (crd["metadata"]["name"] + ".json")
        target.write_text(json.dumps(crd, separators=(",", ":"), ensure_ascii=False) + "\n")
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
