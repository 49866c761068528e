import pytest

from fairlead.server.schema import builtin

KINDS = """
v1 ConfigMap Secret ServiceAccount Namespace Service Pod PersistentVolumeClaim PersistentVolume Event Node Endpoints
v1 LimitRange ResourceQuota PodTemplate ReplicationController
apps/v1 Deployment StatefulSet DaemonSet ReplicaSet ControllerRevision
batch/v1 Job CronJob
rbac.authorization.k8s.io/v1 Role RoleBinding ClusterRole ClusterRoleBinding
coordination.k8s.io/v1 Lease
discovery.k8s.io/v1 EndpointSlice
networking.k8s.io/v1 Ingress NetworkPolicy
policy/v1 PodDisruptionBudget Eviction
autoscaling/v1 HorizontalPodAutoscaler Scale
autoscaling/v2 HorizontalPodAutoscaler
apiextensions.k8s.io/v1 CustomResourceDefinition
events.k8s.io/v1 Event
storage.k8s.io/v1 StorageClass
scheduling.k8s.io/v1 PriorityClass
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration
authorization.k8s.io/v1 SelfSubjectAccessReview
authentication.k8s.io/v1 TokenReview
"""


@pytest.mark.parametrize("line", KINDS.strip().splitlines())
def test_every_kind_has_a_schema(line):
    api_version, *kinds = line.split()
    group, _, version = api_version.rpartition("/")
    for kind in kinds:
        node = builtin.schema_of_kind(group, version, kind)
        assert node.fields["apiVersion"].type == "string"
        assert node.go.struct == kind


def test_every_type_of_the_table_compiles():
    for name in builtin.table()["types"]:
        assert builtin.schema_of_type(name).type == "object"


def test_table_names_its_source_and_licence():
    assert "v1.36.4" in builtin.table()["notice"]
    assert "Apache-2.0" in builtin.table()["notice"]


def test_list_and_map_types_are_those_of_kubernetes():
    container = builtin.schema_of_kind("", "v1", "Pod").fields["spec"].fields["containers"].items
    assert container is not None
    ports = container.fields["ports"]
    assert (ports.list_type, ports.keys) == ("map", ("containerPort", "protocol"))
    assert ports.items is not None
    assert ports.items.fields["protocol"].default == "TCP"
    assert container.fields["args"].list_type == "atomic"
    metadata = builtin.schema_of_kind("", "v1", "ConfigMap").fields["metadata"]
    assert metadata.fields["finalizers"].list_type == "set"
    assert metadata.fields["ownerReferences"].items is not None
    assert metadata.fields["ownerReferences"].items.map_type == "atomic"
    assert builtin.schema_of_kind("", "v1", "Service").fields["spec"].fields["selector"].map_type == "atomic"
    assert (
        builtin.schema_of_kind("rbac.authorization.k8s.io", "v1", "RoleBinding").fields["roleRef"].map_type == "atomic"
    )


def test_inlined_struct_fields_belong_to_the_outer_struct():
    volumes = builtin.schema_of_kind("", "v1", "Pod").fields["spec"].fields["volumes"]
    assert volumes.go.strategy == ("merge", "retainKeys")
    assert volumes.go.merge_key == "name"
    assert volumes.items is not None
    assert "configMap" in volumes.items.fields


def test_recursive_type_shares_its_fields():
    props = builtin.schema_of_type("apiextensions.v1.JSONSchemaProps")
    values = props.fields["properties"].values
    assert values is not None
    assert values.fields is props.fields


def test_fields_of_a_kind_compile_on_first_access(monkeypatch):
    builtin.schema_of_kind.cache_clear()
    monkeypatch.setattr(builtin, "_structs", {})
    pod = builtin.schema_of_kind("", "v1", "Pod")
    assert not builtin._structs
    assert pod.fields["spec"].go.name == "core.v1.PodSpec"
    assert set(builtin._structs) == {"core.v1.Pod"}
