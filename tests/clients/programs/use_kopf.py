"""Run a kopf operator: it creates a child, updates it, reports a status, runs a timer, and cleans up."""

import asyncio

import kopf
from kubernetes import client, config

config.load_kube_config()
handled_events = []
GROUP = ("example.com", "v1", "default", "widgets")


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.level = 20
    settings.persistence.finalizer = "example.com/kopf"


@kopf.on.create("example.com", "v1", "widgets")
def created(spec, name, namespace, patch, **_):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"size": str(spec["size"])}}
    kopf.adopt(body)
    client.CoreV1Api().create_namespaced_config_map(namespace, body)
    patch.status["phase"] = "Made"
    handled_events.append("create")
    return {"child": name}


@kopf.on.field("example.com", "v1", "widgets", field="spec.size")
def resized(old, new, name, namespace, **_):
    if old is None:
        return
    client.CoreV1Api().patch_namespaced_config_map(name, namespace, {"data": {"size": str(new)}})
    handled_events.append(f"resize {old} to {new}")


@kopf.timer("example.com", "v1", "widgets", interval=0.2)
def tick(**_):
    if "tick" not in handled_events:
        handled_events.append("tick")


@kopf.on.delete("example.com", "v1", "widgets")
def deleted(name, namespace, **_):
    client.CoreV1Api().delete_namespaced_config_map(name, namespace)
    handled_events.append("delete")


def define():
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    client.ApiextensionsV1Api().create_custom_resource_definition(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": spec,
        }
    )


async def until(is_met):
    for _ in range(400):
        if await asyncio.to_thread(is_met):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"never came: {is_met.__doc__}; seen {handled_events}")


async def drive(stop):
    custom, core = client.CustomObjectsApi(), client.CoreV1Api()
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    await asyncio.to_thread(custom.create_namespaced_custom_object, *GROUP, body)

    def reported():
        """Wait for the status."""
        status = custom.get_namespaced_custom_object(*GROUP, "w").get("status") or {}
        return status.get("phase") == "Made" and status.get("created") == {"child": "w"}

    def followed():
        """Wait until the child has the new size."""
        return core.read_namespaced_config_map("w", "default").data == {"size": "2"}

    def gone():
        """Wait until the object is deleted."""
        return not custom.list_namespaced_custom_object(*GROUP)["items"]

    def ticked():
        """Wait for a run of the timer."""
        return "tick" in handled_events

    await until(reported)
    await until(ticked)
    await asyncio.to_thread(custom.patch_namespaced_custom_object, *GROUP, "w", {"spec": {"size": 2}})
    await until(followed)
    await asyncio.to_thread(custom.delete_namespaced_custom_object, *GROUP, "w")
    await until(gone)
    assert not core.list_namespaced_config_map("default").items
    assert [handled_event for handled_event in handled_events if handled_event != "tick"] == [
        "create",
        "resize 1 to 2",
        "delete",
    ], handled_events
    stop.set()


async def main():
    stop = asyncio.Event()
    running = asyncio.ensure_future(kopf.operator(namespaces=["default"], stop_flag=stop, standalone=True))
    try:
        await drive(stop)
        await asyncio.wait_for(running, 20)
    finally:
        running.cancel()


define()
asyncio.run(main())
print("done")
