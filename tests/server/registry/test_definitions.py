import pytest

from fairlead.server.registry import strategies
from fairlead.server.schema import codec

CRD = next(r for r in strategies.resources() if r.kind == "CustomResourceDefinition")
ROOT = "spec.validation.openAPIV3Schema"
X = f"{ROOT}.properties[spec].properties[x]"


def definition(schema=None, **spec):
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or {"type": "object"}},
    }
    full_spec = {"group": "g.example.com", "scope": "Namespaced", "names": names, "versions": [version], **spec}
    obj = codec.decode(CRD.schema, {"metadata": {"name": "widgets.g.example.com"}, "spec": full_spec}).object
    obj = CRD.default(obj)
    CRD.prepare_create(obj)
    return obj


def errors(obj, old=None):
    return [f"{error.field}: {error.message}" for error in CRD.validate(obj, old)]


def schema_errors(x):
    """Return the errors of a definition whose spec has a property x with this schema."""
    return errors(definition({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": x}}}}))


def test_valid_definition_gets_default_names_and_status():
    obj = definition()
    assert errors(obj) == []
    assert obj["spec"]["names"]["listKind"] == "WidgetList"
    assert obj["spec"]["conversion"] == {"strategy": "None"}
    assert obj["status"] == {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": ["v1"]}


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (
            {"properties": {"a": {"type": "string"}}},
            f"{X}.type: Required value: must not be empty for specified object fields",
        ),
        ({"type": "array"}, f"{X}.items: Required value: must be specified"),
        (
            {"type": "array", "items": [{"type": "string"}]},
            f"{X}.items: Forbidden: items must be a schema object and not an array",
        ),
        (
            {"type": "string", "anyOf": [{"type": "string"}]},
            f"{X}.anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        ({"type": "string", "id": "x"}, f"{X}.id: Forbidden: id is not supported"),
        (
            {"type": "string", "pattern": "("},
            (
                f'{X}.pattern: Invalid value: "(": must be a valid regular expression, '
                "but isn't: error parsing regexp: missing closing ): `(`"
            ),
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            f"{X}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"},
            f'{X}.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"',
        ),
        (
            {"type": "string", "default": 5},
            f'{X}.default: Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}},
            f'{X}.default: Invalid value: {{"b":1}}: must not have unknown fields',
        ),
    ],
)
def test_schema_that_is_not_structural_is_rejected(schema, error):
    assert schema_errors(schema) == [error]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": False},
        {"type": "string", "default": None},
        {"type": "string", "x-kubernetes-int-or-string": True},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "string", "minLength": -1},
        {"type": "string", "format": "made-up"},
        {"type": "array", "items": {"x-kubernetes-int-or-string": True}, "default": [None, True]},
        {"type": "object", "properties": {"x": {"x-kubernetes-int-or-string": True}}, "default": {"x": None}},
    ],
)
def test_unusual_schema_is_accepted(schema):
    assert schema_errors(schema) == []


def test_unknown_format_returns_a_warning():
    obj = definition({"type": "object", "properties": {"x": {"type": "string", "format": "made-up"}}})
    assert CRD.warn(obj, None) == ['unrecognized format "made-up"']


@pytest.mark.parametrize(("versions", "shown_versions"), [(None, "null"), ([], "[]")])
def test_definition_without_versions_is_rejected(versions, shown_versions):
    assert errors(definition(versions=versions)) == [
        f"spec.versions: Invalid value: {shown_versions}: must have exactly one version marked as storage version",
        "status.storedVersions: Invalid value: null: must have at least one stored version",
    ]


def test_group_is_immutable():
    old = definition()
    moved_definition = {**old, "spec": {**old["spec"], "group": "h.example.com"}}
    assert errors(moved_definition, old) == ['spec.group: Invalid value: "h.example.com": field is immutable']


@pytest.mark.parametrize(
    ("fields", "ending"),
    [
        ({"deprecated": True, "deprecationWarning": ""}, 'Invalid value: "": must not be an empty string'),
        ({"deprecated": True, "deprecationWarning": "\u00fc\n"}, "non-printable character found at index 2"),
        ({"deprecated": True, "deprecationWarning": "x" * 257}, "must be <= 256 characters long"),
        ({"deprecationWarning": "x"}, "can only be set for deprecated versions"),
    ],
)
def test_deprecation_warning_is_one_printable_line_of_a_deprecated_version(fields, ending):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    (error,) = errors(definition(versions=[version | fields]))
    assert error.startswith("spec.versions[0].deprecationWarning: Invalid value: ")
    assert error.endswith(ending)


def test_conversion_requires_a_strategy():
    assert errors(definition(conversion={})) == ["spec.conversion.strategy: Required value"]


def test_int_or_string_by_any_of_requires_the_keyword():
    errors = schema_errors({"anyOf": [{"type": "integer"}, {"type": "string"}]})
    assert errors == [f"{X}.type: Required value: must not be empty for specified object fields"]
