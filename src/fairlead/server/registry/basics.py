"""The kinds that the server itself cannot do without."""

from fairlead.server.registry.resource import Resource
from fairlead.server.schema.nodes import Node

_ANY = Node("object", preserve=True)

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", "namespace", False, _ANY, short_names=("ns",), status=True,
                     delete_answers_object=True)  # fmt: skip
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", "configmap", True, _ANY, short_names=("cm",))
CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
               "customresourcedefinition", False, _ANY, short_names=("crd", "crds"), categories=("api-extensions",),
               status=True, has_generation=True)  # fmt: skip

BASICS = (NAMESPACE, CONFIG_MAP, CRD)
