"""Write src/fairlead/server/tables/columns.json, the Table columns of the built-in kinds of a real server.

python scripts/columns.py URL TOKEN
"""

import json
import ssl
import sys
import urllib.request
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "fairlead" / "server" / "tables" / "columns.json"
NOTICE = "Column definitions of Kubernetes v1.36.4 as its API answers them; Kubernetes is licensed under Apache-2.0."


def get(url, token, path, accept="application/json"):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}", "Accept": accept})
    with urllib.request.urlopen(request, context=context) as response:
        return json.load(response)


def main(url, token):
    versions = ["v1"] + [g["preferredVersion"]["groupVersion"] for g in get(url, token, "/apis")["groups"]]
    texts, kinds = [], {}
    for version in versions:
        if "." in version and not version.split("/")[0].endswith(".k8s.io"):
            continue
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for resource in get(url, token, base)["resources"]:
            if "/" in resource["name"] or "list" not in resource["verbs"]:
                continue
            table = get(
                url, token, f"{base}/{resource['name']}?limit=1", "application/json;as=Table;g=meta.k8s.io;v=v1"
            )
            columns = []
            for column in table["columnDefinitions"]:
                if column["description"] not in texts:
                    texts.append(column["description"])
                at = texts.index(column["description"])
                columns.append([column["name"], column["type"], column["format"], column["priority"], at])
            group = version.rpartition("/")[0]
            kinds[f"{group}/{resource['name']}"] = columns
    document = {"notice": NOTICE, "texts": texts, "kinds": kinds}
    TARGET.write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(f"{len(kinds)} kinds, {len(texts)} texts")


if __name__ == "__main__":
    main(*sys.argv[1:3])
