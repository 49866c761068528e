import pytest

from fairlead.server.registry import defaults, strategies
from fairlead.server.schema import builtin as schemas
from fairlead.server.schema import codec

RESOURCES = {(r.group, r.kind): r for r in strategies.resources()}
CONTAINER = {"name": "c", "image": "i:1"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
SELECTOR = {"matchLabels": {"a": "b"}}


def create(group, kind, **fields):
    """Return an object as a server stores it on create."""
    resource = RESOURCES[group, kind]
    metadata = {"name": "x", "uid": "11111111-2222-3333-4444-555555555555"}
    obj = codec.decode(resource.schema, {"metadata": metadata, **fields}).object
    obj = resource.default(obj)
    if resource.prepare_create:
        resource.prepare_create(obj)
    return obj


def errors(group, kind, old=None, **fields):
    return [
        f"{error.field}: {error.message}"
        for error in RESOURCES[group, kind].validate(create(group, kind, **fields), old)
    ]


def test_strategies_set_the_flags_of_resources():
    assert set(strategies.STRATEGIES) <= set(RESOURCES)
    lease = RESOURCES["coordination.k8s.io", "Lease"]
    assert (lease.creates_on_update, lease.allows_unconditional_update, lease.has_generation) == (True, False, False)
    deployment = RESOURCES["apps", "Deployment"]
    assert deployment.generation_fields == ("spec", "metadata.annotations")
    assert deployment.has_status
    assert deployment.scale
    assert RESOURCES["", "Service"].delete_returns_object
    assert RESOURCES["", "ConfigMap"].verbs[0] == "create"


def test_resources_compile_few_schemas(monkeypatch):
    for cached in (schemas.table, schemas.schema_of_kind, schemas.schema_of_type, strategies.resources):
        cached.cache_clear()
    monkeypatch.setattr(schemas, "_structs", {})
    strategies.resources()
    assert len(schemas._structs) < len(schemas.table()["types"]) / 10


def test_deployment_defaults_reach_its_containers():
    spec = create("apps", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE})["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert spec["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert "enableServiceLinks" not in spec["template"]["spec"]


def test_defaults_are_idempotent():
    resource = RESOURCES["apps", "Deployment"]
    obj = create("apps", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE})
    defaulted_twice = resource.default(codec.decode(resource.schema, obj).object)
    assert defaulted_twice == obj
    assert resource.default(defaulted_twice) is defaulted_twice


def test_defaults_keep_an_explicit_zero():
    assert create("apps", "Deployment", spec={"replicas": 0})["spec"]["replicas"] == 0


def test_kind_without_defaults_returns_the_same_object():
    obj = {"data": {"a": "b"}}
    assert defaults.apply_defaults(RESOURCES["", "ConfigMap"].schema, obj) is obj


@pytest.mark.parametrize(
    ("resources", "qos_class"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_pod_gets_its_qos_class(resources, qos_class):
    pod = create("", "Pod", spec={"containers": [{**CONTAINER, "resources": resources}]})
    assert pod["status"] == {"phase": "Pending", "qosClass": qos_class}


def test_job_selects_its_pods_by_its_uid():
    job = create("batch", "Job", spec={"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}})
    uid = job["metadata"]["uid"]
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"]["job-name"] == "x"
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]


def test_headless_service_families_depend_on_its_selector():
    assert create("", "Service", spec={"clusterIP": "None", "selector": {"a": "b"}})["spec"]["ipFamilies"] == ["IPv4"]
    assert create("", "Service", spec={"clusterIP": "None"})["spec"]["ipFamilyPolicy"] == "RequireDualStack"


def test_string_data_of_a_secret_becomes_data():
    assert create("", "Secret", stringData={"a": "b"}) == {
        "metadata": {"name": "x", "uid": "11111111-2222-3333-4444-555555555555"},
        "type": "Opaque",
        "data": {"a": "Yg=="},
    }


def test_selector_must_match_the_template_and_is_immutable():
    spec = {"selector": {"matchLabels": {"a": "c"}}, "template": TEMPLATE}
    old = create("apps", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE})
    assert errors("apps", "Deployment", old, spec=spec) == [
        'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
        'spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable',
    ]


def test_immutable_config_map_rejects_changes():
    old = create("", "ConfigMap", data={"a": "b"}, immutable=True)
    assert errors("", "ConfigMap", old, data={"a": "c"}) == [
        "immutable: Forbidden: field is immutable when `immutable` is set",
        "data: Forbidden: field is immutable when `immutable` is set",
    ]


@pytest.mark.parametrize(
    ("group", "kind", "fields", "first"),
    [
        ("", "ConfigMap", {"data": {"..": ""}}, "data[..]: Invalid value: \"..\": must not be '..'"),
        ("", "Pod", {"spec": {}}, "spec.containers: Required value"),
        ("", "Service", {"spec": {"type": "ExternalName"}}, "spec.externalName: Required value"),
        (
            "rbac.authorization.k8s.io",
            "Role",
            {"rules": [{}]},
            "rules[0].verbs: Required value: verbs must contain at least one value",
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            {},
            'roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole"',
        ),
        ("discovery.k8s.io", "EndpointSlice", {}, "addressType: Required value"),
        (
            "policy",
            "PodDisruptionBudget",
            {"spec": {"minAvailable": "150%"}},
            'spec.minAvailable: Invalid value: "150%": must not be greater than 100%',
        ),
        (
            "coordination.k8s.io",
            "Lease",
            {"spec": {"leaseDurationSeconds": 0}},
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
    ],
)
def test_first_error_has_the_text_of_a_real_server(group, kind, fields, first):
    assert errors(group, kind, **fields)[0] == first
