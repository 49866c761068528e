"""Use the official Python client: typed and dynamic objects, watches, server-side apply, tokens, impersonation."""

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

config.load_kube_config()
core, apps, rbac = client.CoreV1Api(), client.AppsV1Api(), client.RbacAuthorizationV1Api()
assert client.VersionApi().get_code().git_version == "v1.36.4"

# Typed objects there and back.
labels = {"app": "web"}
core.create_namespaced_config_map(
    "default", client.V1ConfigMap(metadata={"name": "a", "labels": labels}, data={"k": "v"})
)
read = core.read_namespaced_config_map("a", "default")
assert (read.data, read.metadata.labels) == ({"k": "v"}, labels)
assert [
    config_map.metadata.name
    for config_map in core.list_namespaced_config_map("default", label_selector="app=web").items
] == ["a"]

# A stale replace is a conflict.
stale_map = core.read_namespaced_config_map("a", "default")
read.data["k"] = "w"
core.replace_namespaced_config_map("a", "default", read)
try:
    core.replace_namespaced_config_map("a", "default", stale_map)
    raise AssertionError("a stale replace was taken")
except ApiException as error:
    assert (error.status, error.reason) == (409, "Conflict")

# Patches: strategic by default, and apply.
container = client.V1Container(name="c", image="web:1", ports=[client.V1ContainerPort(container_port=80)])
template = client.V1PodTemplateSpec(metadata={"labels": labels}, spec=client.V1PodSpec(containers=[container]))
spec = client.V1DeploymentSpec(replicas=1, selector={"matchLabels": labels}, template=template)
apps.create_namespaced_deployment("default", client.V1Deployment(metadata={"name": "web"}, spec=spec))
env = {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}}}}
patched = apps.patch_namespaced_deployment("web", "default", env)
assert patched.spec.template.spec.containers[0].image == "web:1"
assert apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}}).spec.replicas == 3

# A watch from a list, by the client's own helper.
start = core.list_namespaced_config_map("default").metadata.resource_version
core.create_namespaced_config_map("default", client.V1ConfigMap(metadata={"name": "b"}))
core.delete_namespaced_config_map("b", "default")
watched_events = []
for event in watch.Watch().stream(
    core.list_namespaced_config_map, "default", resource_version=start, timeout_seconds=5
):
    watched_events.append((event["type"], event["object"].metadata.name))
    if len(watched_events) == 2:
        break
assert watched_events == [("ADDED", "b"), ("DELETED", "b")]

# Custom resources, by the dynamic client and its discovery.
names = {"plural": "widgets", "kind": "Widget", "singular": "widget"}
schema = {
    "openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }
}
versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
definition = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
}
client.ApiextensionsV1Api().create_custom_resource_definition(definition)
dynamic_client = dynamic.DynamicClient(client.ApiClient())
widgets = dynamic_client.resources.get(api_version="example.com/v1", kind="Widget")
body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
widgets.server_side_apply(body=body, namespace="default", field_manager="me")
assert widgets.get(name="w", namespace="default").spec.size == 1
custom = client.CustomObjectsApi()
custom.patch_namespaced_custom_object("example.com", "v1", "default", "widgets", "w", {"spec": {"size": 2}})
assert custom.get_namespaced_custom_object("example.com", "v1", "default", "widgets", "w")["spec"]["size"] == 2
widgets.delete(name="w", namespace="default")

# A ServiceAccount's own token has the account's rights and no more.
core.create_namespaced_service_account("default", client.V1ServiceAccount(metadata={"name": "bot"}))
rules = [client.V1PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get"])]
rbac.create_namespaced_role("default", client.V1Role(metadata={"name": "r"}, rules=rules))
reference = client.V1RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="r")
subject = client.RbacV1Subject(kind="ServiceAccount", name="bot", namespace="default")
rbac.create_namespaced_role_binding(
    "default", client.V1RoleBinding(metadata={"name": "r"}, role_ref=reference, subjects=[subject])
)
token_request = client.AuthenticationV1TokenRequest(
    spec=client.V1TokenRequestSpec(audiences=["https://kubernetes.default.svc"])
)
token = core.create_namespaced_service_account_token("bot", "default", token_request).status.token
token_config = client.Configuration.get_default_copy()
token_config.refresh_api_key_hook = None  # or the kubeconfig's token comes back
token_config.api_key = {"authorization": f"Bearer {token}"}
bot = client.CoreV1Api(client.ApiClient(token_config))
assert bot.read_namespaced_config_map("a", "default").data == {"k": "w"}
try:
    bot.list_namespaced_secret("default")
    raise AssertionError("the account may not list secrets")
except ApiException as error:
    assert error.status == 403
apps.delete_namespaced_deployment("web", "default", propagation_policy="Background")
print("done")
