"""The controller of bench/work.py, written with kopf. It applies the children with lightkube."""

import kopf
from lightkube import AsyncClient
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, ContainerPort, PodSpec, PodTemplateSpec, ServicePort, ServiceSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta, OwnerReference
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Service

PAGES = "bench.fairlead.dev/v1", "pages"
Page = create_namespaced_resource("bench.fairlead.dev", "v1", "Page", "pages")


@kopf.on.startup()
async def connect(memo, settings, **_):
    settings.posting.enabled = False
    memo.client = AsyncClient(field_manager="pages")


async def publish(client, namespace, name, uid, message):
    owner = OwnerReference("bench.fairlead.dev/v1", "Page", name, uid, blockOwnerDeletion=True, controller=True)
    labels = {"page": name}
    meta = ObjectMeta(name=name, namespace=namespace, labels=labels, ownerReferences=[owner])
    container = Container("web", image="nginx:1.29", ports=[ContainerPort(80)])
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels, annotations={"message": message}), spec=PodSpec([container])
    )
    await client.apply(ConfigMap(metadata=meta, data={"message": message}), force=True)
    await client.apply(Service(metadata=meta, spec=ServiceSpec(selector=labels, ports=[ServicePort(80)])), force=True)
    spec = DeploymentSpec(LabelSelector(matchLabels=labels), template, replicas=1)
    await client.apply(Deployment(metadata=meta, spec=spec), force=True)


@kopf.on.resume(*PAGES)
@kopf.on.create(*PAGES)
@kopf.on.update(*PAGES, field="spec")
async def reconcile(memo, namespace, name, uid, spec, patch, **_):
    await publish(memo.client, namespace, name, uid, spec["message"])
    patch.status["message"] = spec["message"]


@kopf.on.delete(*PAGES)
async def cleanup_page(**_):
    """Do nothing: there is no external resource to clean up, but the benchmark measures the finalizer."""


@kopf.on.event("v1", "configmaps", labels={"page": kopf.PRESENT})
@kopf.on.event("v1", "services", labels={"page": kopf.PRESENT})
@kopf.on.event("apps", "v1", "deployments", labels={"page": kopf.PRESENT})
async def child(memo, event, namespace, name, **_):
    """Look up the owner of a deleted child and publish it again, because kopf does not notify owners."""
    if event["type"] == "DELETED":
        try:
            page = await memo.client.get(Page, name, namespace=namespace)
        except ApiError as error:
            if error.status.code == 404:
                return
            raise
        if page.metadata.deletionTimestamp is None:
            await publish(memo.client, namespace, name, page.metadata.uid, page.spec["message"])
