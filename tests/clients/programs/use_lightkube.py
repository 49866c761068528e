"""Use lightkube: typed and generic resources, apply, watches and patches."""

from lightkube import ApiError, Client
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.core_v1 import ServicePort, ServiceSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.core_v1 import ConfigMap, Namespace, Service
from lightkube.types import PatchType

client = Client(field_manager="light")
client.create(Namespace(metadata=ObjectMeta(name="light")))
client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="light"), data={"k": "v"}))
fetched = client.get(ConfigMap, "a", namespace="light")
fetched.data["k"] = "w"
client.replace(fetched)
client.patch(ConfigMap, "a", {"data": {"n": "1"}}, namespace="light", patch_type=PatchType.MERGE)
assert client.get(ConfigMap, "a", namespace="light").data == {"k": "w", "n": "1"}

service = Service(
    apiVersion="v1",
    kind="Service",
    metadata=ObjectMeta(name="s", namespace="light"),
    spec=ServiceSpec(ports=[ServicePort(port=80)], selector={"a": "b"}),
)
applied = client.apply(service)
assert applied.spec.clusterIP
assert [listed.metadata.name for listed in client.list(Service, namespace="light")] == ["s"]

for kind, obj in client.watch(ConfigMap, namespace="light", server_timeout=5):
    assert (kind, obj.metadata.name) == ("ADDED", "a")
    break

definition = CustomResourceDefinition.from_dict(
    {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
)
client.create(definition)
client.wait(CustomResourceDefinition, "widgets.example.com", for_conditions=["Established"])
Widget = create_namespaced_resource("example.com", "v1", "Widget", "widgets")
client.create(Widget({"metadata": {"name": "w", "namespace": "light"}, "spec": {"size": 1}}))
widget = client.get(Widget, "w", namespace="light")
widget["status"] = {"phase": "Ready"}
client.replace(Widget.Status(widget))
assert client.get(Widget, "w", namespace="light")["status"]["phase"] == "Ready"
client.delete(Widget, "w", namespace="light")
try:
    client.get(Widget, "w", namespace="light")
    raise AssertionError("it was deleted")
except ApiError as error:
    assert error.status.code == 404
client.deletecollection(ConfigMap, namespace="light")
assert not list(client.list(ConfigMap, namespace="light"))
print("done")
