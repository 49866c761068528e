"""Use kr8s: read, write and watch objects."""

import kr8s
from kr8s.objects import ConfigMap, CustomResourceDefinition, Deployment, new_class

api = kr8s.api()
assert api.version()["gitVersion"] == "v1.36.4"
config = ConfigMap({"metadata": {"name": "a", "namespace": "default", "labels": {"x": "y"}}, "data": {"k": "v"}})
config.create()
assert config.exists()
config.patch({"data": {"k": "w"}})
config.label(tier="front")
config.refresh()
assert (config.data["k"], config.labels["tier"]) == ("w", "front")
assert [config_map.name for config_map in kr8s.get("configmaps", namespace="default", label_selector={"x": "y"})] == [
    "a"
]

deployment = Deployment(
    {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
)
deployment.create()
deployment.patch({"status": {"readyReplicas": 1, "replicas": 1}}, subresource="status")
deployment.wait("jsonpath='{.status.readyReplicas}'=1", timeout=20)
deployment.delete()

CustomResourceDefinition(
    {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
).create()
Widget = new_class(kind="Widget", version="example.com/v1", namespaced=True)
widget = Widget({"metadata": {"name": "w", "namespace": "default"}, "spec": {"size": 1}})
widget.create()
for kind, event_object in kr8s.watch("widgets.example.com", namespace="default"):
    assert (kind, event_object.name) == ("ADDED", "w")
    break
widget.delete()
widget.wait("delete", timeout=20)
assert not widget.exists()
assert any(resource["name"] == "deployments" for resource in api.api_resources())
print("done")
