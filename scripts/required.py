"""Write src/fairlead/server/openapi/required.json: the required fields of the built-in types.

python scripts/required.py URL TOKEN
"""

import json
import ssl
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src" / "fairlead" / "server" / "openapi" / "required.json"
NOTICE = "Required fields of Kubernetes v1.36.4's types as its OpenAPI answers them; Kubernetes is under Apache-2.0."


def get(url, token, path):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=context) as response:
        return json.load(response)


def main(url, token):
    builtin_types = json.loads((ROOT / "src/fairlead/server/schema/builtin.json").read_text())["types"]
    required = {}
    for path, api_document in get(url, token, "/openapi/v3")["paths"].items():
        if path != "api/v1" and not path.startswith("apis/") and "." not in path:
            continue
        components = get(url, token, api_document["serverRelativeURL"]).get("components") or {}
        for name, schema in (components.get("schemas") or {}).items():
            short_name = ".".join(name.split(".")[-3:])
            if name.startswith("io.k8s.") and short_name in builtin_types and schema.get("required"):
                required[short_name] = schema["required"]
    document = {"notice": NOTICE, "types": dict(sorted(required.items()))}
    TARGET.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    print(f"{len(required)} types have required fields")


if __name__ == "__main__":
    main(*sys.argv[1:3])
