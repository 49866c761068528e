import pytest

from fairlead.server.registry import builtin
from fairlead.server.schema import codec

CRD = next(r for r in builtin.resources() if r.kind == "CustomResourceDefinition")
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
    given = {"group": "g.example.com", "scope": "Namespaced", "names": names, "versions": [version], **spec}
    obj = codec.decode(CRD.schema, {"metadata": {"name": "widgets.g.example.com"}, "spec": given}).object
    obj = CRD.default(obj)
    CRD.prepare_create(obj)
    return obj


def told(obj, old=None):
    return [f"{c.field}: {c.message}" for c in CRD.validate(obj, old)]


def of(x):
    """What is wrong with a schema whose spec has this x."""
    return told(definition({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": x}}}}))


def test_a_sound_definition_is_accepted_and_named():
    obj = definition()
    assert told(obj) == []
    assert obj["spec"]["names"]["listKind"] == "WidgetList"
    assert obj["spec"]["conversion"] == {"strategy": "None"}
    assert obj["status"] == {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": ["v1"]}


@pytest.mark.parametrize(
    ("schema", "problem"),
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
def test_a_schema_that_is_not_structural_is_refused(schema, problem):
    assert of(schema) == [problem]


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
def test_odd_schemas_are_accepted(schema):
    assert of(schema) == []


def test_an_unknown_format_is_warned_of():
    obj = definition({"type": "object", "properties": {"x": {"type": "string", "format": "made-up"}}})
    assert CRD.warn(obj, None) == ['unrecognized format "made-up"']


@pytest.mark.parametrize(("versions", "shown"), [(None, "null"), ([], "[]")])
def test_exactly_one_version_is_stored_and_stored_ones_stay(versions, shown):
    assert told(definition(versions=versions)) == [
        f"spec.versions: Invalid value: {shown}: must have exactly one version marked as storage version",
        "status.storedVersions: Invalid value: null: must have at least one stored version",
    ]


def test_the_group_of_an_object_never_changes():
    old = definition()
    moved = {**old, "spec": {**old["spec"], "group": "h.example.com"}}
    assert told(moved, old) == ['spec.group: Invalid value: "h.example.com": field is immutable']


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"deprecated": True, "deprecationWarning": ""}, 'Invalid value: "": must not be an empty string'),
        ({"deprecated": True, "deprecationWarning": "\u00fc\n"}, "non-printable character found at index 2"),
        ({"deprecated": True, "deprecationWarning": "x" * 257}, "must be <= 256 characters long"),
        ({"deprecationWarning": "x"}, "can only be set for deprecated versions"),
    ],
)
def test_a_version_warns_in_one_line_and_only_where_it_is_deprecated(fields, problem):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    (found,) = told(definition(versions=[version | fields]))
    assert found.startswith("spec.versions[0].deprecationWarning: Invalid value: ")
    assert found.endswith(problem)


def test_a_conversion_says_how():
    assert told(definition(conversion={})) == ["spec.conversion.strategy: Required value"]


def test_integers_or_strings_by_alternatives_need_the_keyword_alone():
    found = of({"anyOf": [{"type": "integer"}, {"type": "string"}]})
    assert found == [f"{X}.type: Required value: must not be empty for specified object fields"]
