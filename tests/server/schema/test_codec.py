import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.golang import encoding
from fairlead.server.schema import builtin, empty_values, quantity, times
from fairlead.server.schema.codec import DecodeError, decode

CONFIG_MAP = builtin.schema_of_kind("", "v1", "ConfigMap")
SECRET = builtin.schema_of_kind("", "v1", "Secret")
POD = builtin.schema_of_kind("", "v1", "Pod")
DEPLOYMENT = builtin.schema_of_kind("apps", "v1", "Deployment")
ROLE = builtin.schema_of_kind("rbac.authorization.k8s.io", "v1", "Role")
CRD = builtin.schema_of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


@pytest.mark.parametrize(
    ("node", "body", "value", "field", "go_type"),
    [
        (CONFIG_MAP, {"data": {"a": 1}}, "number", "ConfigMap.data", "string"),
        (CONFIG_MAP, {"data": "x"}, "string", "ConfigMap.data", "map[string]string"),
        (CONFIG_MAP, {"metadata": "x"}, "string", "ConfigMap.metadata", "v1.ObjectMeta"),
        (CONFIG_MAP, {"immutable": "x"}, "string", "ConfigMap.immutable", "bool"),
        (CONFIG_MAP, {"metadata": {"labels": {"a": 1}}}, "number", "ObjectMeta.metadata.labels", "string"),
        (CONFIG_MAP, {"metadata": {"name": 5}}, "number", "ObjectMeta.metadata.name", "string"),
        (DEPLOYMENT, {"spec": {"replicas": 1.5}}, "number 1.5", "DeploymentSpec.spec.replicas", "int32"),
        (DEPLOYMENT, {"spec": {"replicas": "x"}}, "string", "DeploymentSpec.spec.replicas", "int32"),
        (SECRET, {"data": {"a": 5}}, "number", "Secret.data", "[]uint8"),
        (
            POD,
            {"spec": {"volumes": [{"configMap": 5}]}},
            "number",
            "Volume.spec.volumes.VolumeSource.configMap",
            "v1.ConfigMapVolumeSource",
        ),
        (POD, {"spec": {"containers": {}}}, "object", "PodSpec.spec.containers", "[]v1.Container"),
    ],
)
def test_wrong_type_raises_gos_message(node, body, value, field, go_type):
    with pytest.raises(DecodeError) as error:
        decode(node, body)
    assert error.value.message == f"json: cannot unmarshal {value} into Go struct field {field} of type {go_type}"


@pytest.mark.parametrize(
    ("node", "body", "message"),
    [
        (SECRET, {"data": {"a": "abc"}}, "illegal base64 data at input byte 0"),
        (SECRET, {"data": {"a": "abc!"}}, "illegal base64 data at input byte 3"),
        (POD, {"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}}, quantity.WRONG_FORMAT),
    ],
)
def test_unparsable_value_raises_gos_message(node, body, message):
    with pytest.raises(DecodeError) as error:
        decode(node, body)
    assert error.value.message == message


def test_unknown_fields_are_dropped_and_listed_in_document_order():
    body = {"x": 1, "spec": {"containers": [{"name": "a", "y": 1}], "z": {}}, "metadata": {"annotations": {"w": "1"}}}
    decoded = decode(POD, body)
    assert decoded.unknown == ["x", "spec.containers[0].y", "spec.z"]
    assert decoded.object["spec"] == {"containers": [{"name": "a", "resources": {}}]}


def test_keys_are_case_sensitive():
    assert decode(CONFIG_MAP, {"Data": {"a": "b"}}).unknown == ["Data"]


def test_empty_and_null_values_are_omitted_like_in_go():
    body = {"data": {}, "immutable": None, "metadata": {"labels": {}, "generation": 0}}
    assert decode(CONFIG_MAP, body).object == {"metadata": {}}


def test_fields_that_go_always_writes_are_added():
    assert decode(ROLE, {}).object == {"metadata": {}, "rules": None}
    assert decode(DEPLOYMENT, {}).object == {
        "metadata": {},
        "spec": {"selector": None, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": None}}},
        "status": {},
    }


def test_empty_list_becomes_null_only_in_storage():
    decoded_role = decode(ROLE, {"rules": []}).object
    assert decoded_role == {"metadata": {}, "rules": []}
    assert empty_values.drop(ROLE, decoded_role) == {"metadata": {}, "rules": None}
    assert empty_values.drop(ROLE, {"rules": [{"verbs": []}]}) == {"rules": [{"verbs": None}]}
    same = decode(ROLE, {"rules": [{"verbs": ["get"]}]}).object
    assert empty_values.drop(ROLE, same) is same


def test_null_in_a_map_or_list_is_the_zero_value():
    assert decode(CONFIG_MAP, {"data": {"a": None}}).object["data"] == {"a": ""}
    assert decode(SECRET, {"data": {"a": None}}).object["data"] == {"a": ""}
    assert decode(POD, {"spec": {"containers": [None]}}).object["spec"]["containers"] == [{"name": "", "resources": {}}]


def test_pointer_field_keeps_its_zero_value():
    assert decode(DEPLOYMENT, {"spec": {"replicas": 0}}).object["spec"]["replicas"] == 0
    assert decode(CONFIG_MAP, {"immutable": False}).object["immutable"] is False


def test_base64_is_written_in_its_standard_form():
    assert decode(SECRET, {"data": {"a": "YW\nJj"}}).object["data"] == {"a": "YWJj"}


def test_schemas_of_a_crd_decode_through_their_unions():
    schema = {
        "type": "object",
        "additionalProperties": True,
        "properties": {"l": {"items": {"type": "string", "x": 1}}},
    }
    body = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    decoded = decode(CRD, body)
    decoded_schema = decoded.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert decoded_schema == {
        "type": "object",
        "additionalProperties": True,
        "properties": {"l": {"items": {"type": "string"}}},
    }
    assert decoded.unknown == []  # The unions are decoded leniently.


def test_decode_does_not_change_its_input():
    body = {"metadata": {"labels": {}}, "data": {"a": None}}
    decode(CONFIG_MAP, body)
    assert body == {"metadata": {"labels": {}}, "data": {"a": None}}


def test_duplicate_keys_are_reported_with_their_path():
    assert encoding.decode(b'{"a": 1, "b": [{"c": 1, "c": 2, "c": 3}], "a": 2}')[1] == ["b[0].c", "a"]
    assert encoding.decode(b'{"a": {"a": 1}}')[1] == []


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0.5", "500m"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("0Mi", "0"),
        ("1e3", "1e3"),
        ("100e1", "1e3"),
        ("12E2", "1200"),
        ("1E", "1E"),
        ("1000Ki", "1000Ki"),
        ("512", "512"),
        ("1023", "1023"),
        ("1024", "1024"),
        ("-1500m", "-1500m"),
        ("0.0000000001", "1n"),
        (".5", "500m"),
        ("1.", "1."),
        ("+1", "+1"),
        ("1.500", "1.500"),
        ("1E3", "1E3"),
        ("10E2", "1e3"),
        (".", "0"),
        ("2048", "2048"),
        ("1.5Ki", "1536"),
        ("0.5Mi", "512Ki"),
        ("0.1Ki", "102400m"),
        ("123456789", "123456789"),
        ("1100000", "1100k"),
    ],
)
def test_canonicalize_returns_the_canonical_quantity(text, canonical):
    assert quantity.canonicalize(text) == canonical


@given(st.from_regex(r"[+-]?[0-9]{1,9}(\.[0-9]{1,6})?(m|k|M|Ki|Mi|Gi|e[0-9])?", fullmatch=True))
def test_canonicalize_keeps_the_value_and_is_idempotent(text):
    canonical = quantity.canonicalize(text)
    assert quantity.canonicalize(canonical) == canonical
    assert quantity.parse(canonical)[0] == quantity.parse(text)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90m", "1h30m0s"), ("1500ms", "1.5s"), ("0", "0s"), ("-1h", "-1h0m0s"), ("1us", "1µs"), ("1.5h", "1h30m0s")],
)
def test_normalize_duration_writes_like_go(text, expected):
    assert times.normalize_duration(text) == expected


def test_normalize_time_returns_utc_with_whole_seconds():
    assert times.normalize_time("2026-01-02T03:04:05.678+01:00") == "2026-01-02T02:04:05Z"
    assert times.normalize_time("2026-01-02T03:04:05.678901Z", is_micro=True) == "2026-01-02T03:04:05.678901Z"
    with pytest.raises(
        ValueError, match=r'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'
    ):
        times.normalize_time("x")


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (NINES, NINES),
        ("1" + "0" * 5000, "100"),  # A real server has no suffix for it.
        ("1100E", "1100E"),
        (f"{NINES}Ki", "9223372036854775807"),
        (f"-{NINES}Ki", "-9223372036854775807"),
        ("1e5000", "100e4998"),
        (f"0.{NINES}", "1"),
        ("1e-5000", "1e-9"),
    ],
)
def test_quantity_with_thousands_of_digits_is_exact(text, canonical):
    assert quantity.canonicalize(text) == canonical
