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
def test_a_wrong_type_is_told_as_go_tells_it(node, body, value, field, go_type):
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
def test_a_value_that_cannot_be_read_is_told_as_go_tells_it(node, body, message):
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


def test_empty_and_null_values_go_where_go_omits_them():
    body = {"data": {}, "immutable": None, "metadata": {"labels": {}, "generation": 0}}
    assert decode(CONFIG_MAP, body).object == {"metadata": {}}


def test_what_go_always_writes_is_filled_in():
    assert decode(ROLE, {}).object == {"metadata": {}, "rules": None}
    assert decode(DEPLOYMENT, {}).object == {
        "metadata": {},
        "spec": {"selector": None, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": None}}},
        "status": {},
    }


def test_what_is_given_empty_is_null_only_once_stored():
    given = decode(ROLE, {"rules": []}).object
    assert given == {"metadata": {}, "rules": []}
    assert empty_values.drop(ROLE, given) == {"metadata": {}, "rules": None}
    assert empty_values.drop(ROLE, {"rules": [{"verbs": []}]}) == {"rules": [{"verbs": None}]}
    same = decode(ROLE, {"rules": [{"verbs": ["get"]}]}).object
    assert empty_values.drop(ROLE, same) is same


def test_null_in_a_map_or_list_is_the_zero_value():
    assert decode(CONFIG_MAP, {"data": {"a": None}}).object["data"] == {"a": ""}
    assert decode(SECRET, {"data": {"a": None}}).object["data"] == {"a": ""}
    assert decode(POD, {"spec": {"containers": [None]}}).object["spec"]["containers"] == [{"name": "", "resources": {}}]


def test_a_pointer_keeps_its_zero_value():
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
    kept = decoded.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert kept == {"type": "object", "additionalProperties": True, "properties": {"l": {"items": {"type": "string"}}}}
    assert decoded.unknown == []  # the unions are decoded leniently


def test_an_input_is_not_changed():
    body = {"metadata": {"labels": {}}, "data": {"a": None}}
    decode(CONFIG_MAP, body)
    assert body == {"metadata": {"labels": {}}, "data": {"a": None}}


def test_duplicate_keys_are_found_where_they_are():
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
def test_quantities_are_written_in_canonical_form(text, canonical):
    assert quantity.canonicalize(text) == canonical


@given(st.from_regex(r"[+-]?[0-9]{1,9}(\.[0-9]{1,6})?(m|k|M|Ki|Mi|Gi|e[0-9])?", fullmatch=True))
def test_a_canonical_quantity_is_the_same_quantity_and_stays(text):
    canonical = quantity.canonicalize(text)
    assert quantity.canonicalize(canonical) == canonical
    assert quantity.parse(canonical)[0] == quantity.parse(text)[0]


@pytest.mark.parametrize(
    ("text", "written"),
    [("90m", "1h30m0s"), ("1500ms", "1.5s"), ("0", "0s"), ("-1h", "-1h0m0s"), ("1us", "1µs"), ("1.5h", "1h30m0s")],
)
def test_durations_are_written_as_go_does(text, written):
    assert times.normalize_duration(text) == written


def test_times_are_utc_and_whole_seconds():
    assert times.normalize_time("2026-01-02T03:04:05.678+01:00") == "2026-01-02T02:04:05Z"
    assert times.normalize_time("2026-01-02T03:04:05.678901Z", micro=True) == "2026-01-02T03:04:05.678901Z"
    with pytest.raises(
        ValueError, match=r'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'
    ):
        times.normalize_time("x")


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("given", "answered"),
    [
        (NINES, NINES),
        ("1" + "0" * 5000, "100"),  # a real server has no suffix for it
        ("1100E", "1100E"),
        (f"{NINES}Ki", "9223372036854775807"),
        (f"-{NINES}Ki", "-9223372036854775807"),
        ("1e5000", "100e4998"),
        (f"0.{NINES}", "1"),
        ("1e-5000", "1e-9"),
    ],
)
def test_quantities_of_thousands_of_digits_are_exact(given, answered):
    assert quantity.canonicalize(given) == answered
