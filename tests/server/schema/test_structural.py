import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.server.schema import structural
from fairlead.server.schema.codec import DecodeError
from fairlead.server.schema.defaulting import apply_defaults
from fairlead.server.schema.pruning import prune
from fairlead.server.schema.validation import validate, validate_by_schema


def spec(properties, **extra_fields):
    return structural.compile_schema(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, **extra_fields}}}
    )


def field_errors(schema, value, old=None):
    """Return the errors of one field `x` of the spec, as text."""
    old_object = None if old is None else {"spec": {"x": old}}
    return [f"{c.field}: {c.message}" for c in validate(spec({"x": schema}), {"spec": {"x": value}}, old_object)]


def test_equal_schemas_are_compiled_once():
    assert spec({"x": {"type": "string"}}) is spec({"x": {"type": "string"}})


def test_prune_drops_and_reports_undeclared_fields():
    node = spec({"o": {"type": "object", "properties": {"a": {}}}, "l": {"type": "array", "items": {"type": "object"}}})
    obj = {"apiVersion": "g/v1", "kind": "X", "spec": {"z": 1, "o": {"a": 1, "y": 2}, "l": [{"b": 1}]}, "w": 1}
    pruned, unknown = prune(node, obj)
    assert pruned == {"apiVersion": "g/v1", "kind": "X", "spec": {"o": {"a": 1}, "l": [{}]}}
    assert unknown == ["spec.l[0].b", "spec.o.y", "spec.z", "w"]
    assert obj["spec"]["z"] == 1  # The input is not changed.


def test_prune_shares_unchanged_values():
    node = spec({"o": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
    obj = {"spec": {"o": {"anything": [1]}}}
    assert prune(node, obj) == (obj, [])
    assert prune(node, obj)[0]["spec"] is obj["spec"]


def test_prune_applies_to_declared_fields_below_preserve_unknown_fields():
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    node = spec({"o": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"k": inner}}})
    assert prune(node, {"spec": {"o": {"k": {"b": 1}, "free": {"b": 1}}}}) == (
        {"spec": {"o": {"k": {}, "free": {"b": 1}}}},
        ["spec.o.k.b"],
    )


def test_prune_drops_nulls_unless_nullable_or_defaulted():
    node = spec(
        {"a": {"type": "string"}, "n": {"type": "string", "nullable": True}, "d": {"type": "string", "default": "x"}}
    )
    pruned, _ = prune(node, {"spec": {"a": None, "n": None, "d": None}})
    assert pruned == {"spec": {"n": None, "d": None}}
    assert apply_defaults(node, pruned) == {"spec": {"n": None, "d": "x"}}


def test_prune_decodes_metadata():
    node = spec({})
    pruned, unknown = prune(node, {"metadata": {"name": "a", "nope": 1, "labels": {}}})
    assert pruned == {"metadata": {"name": "a"}}
    assert unknown == ["metadata.nope"]
    with pytest.raises(DecodeError, match=r"field ObjectMeta\.labels of type string"):
        prune(node, {"metadata": {"labels": {"a": 1}}})


def test_embedded_resource_has_metadata_and_a_type():
    node = spec(
        {"t": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}}
    )
    obj = {"spec": {"t": {"apiVersion": "v1", "metadata": {"name": "A B", "nope": 1}, "other": 1}}}
    pruned, unknown = prune(node, obj)
    assert pruned == {"spec": {"t": {"apiVersion": "v1", "metadata": {"name": "A B"}}}}
    assert unknown == ["spec.t.other", "spec.t.metadata.nope"]
    assert [c.field for c in validate(node, pruned)] == ["spec.t.kind"]


def test_apply_defaults_fills_every_level_without_copies():
    node = spec({"o": {"type": "object", "default": {}, "properties": {"a": {"type": "integer", "default": 1}}}})
    assert apply_defaults(node, {"spec": {}}) == {"spec": {"o": {"a": 1}}}
    assert apply_defaults(node, {}) == {}
    full = {"spec": {"o": {"a": 2}}}
    assert apply_defaults(node, full) is full


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        (
            {"type": "string", "minLength": 2},
            "a",
            ['spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long'],
        ),
        ({"type": "string", "maxLength": 4}, "ééééé", ["spec.x: Too long: may not be more than 4 bytes"]),
        ({"type": "string", "maxLength": 4}, "éééé", []),
        (
            {"type": "string", "pattern": "^a+$"},
            "aab",
            ["spec.x: Invalid value: \"aab\": spec.x in body should match '^a+$'"],
        ),
        ({"type": "integer", "enum": [1, 2]}, 3, ['spec.x: Unsupported value: 3: supported values: "1", "2"']),
        (
            {"type": "integer", "minimum": 1},
            0,
            ["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
        ),
        (
            {"type": "number", "maximum": 1, "exclusiveMaximum": True},
            1.5,
            ["spec.x: Invalid value: 1.5: spec.x in body should be less than 1"],
        ),
        ({"type": "number", "minimum": 0.5}, 0, []),  # An integer is compared with the integral part of the bound.
        ({"type": "integer"}, 1.0, []),
        (
            {"type": "integer"},
            1.5,
            [
                'spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"',
                '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x',
            ],
        ),
        (
            {"type": "integer", "format": "int32"},
            3000000000,
            ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x'],
        ),
        (
            {"type": "integer", "multipleOf": 3},
            4,
            ["spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"],
        ),
        (
            {"type": "array", "minItems": 1, "items": {}},
            [],
            ["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
        ),
        (
            {"type": "array", "items": {"type": "object"}},
            [None],
            ['spec.x[0]: Invalid value: "null": spec.x[0] in body must be of type object: "null"'],
        ),
        (
            {"type": "object", "maxProperties": 1, "additionalProperties": {}},
            {"a": 1, "b": 2},
            ["spec.x: Too many: 2: must have at most 1 items"],
        ),
        ({"type": "object", "required": ["a"]}, {}, ["spec.x.a: Required value"]),
        (
            {"type": "string", "format": "uuid"},
            "nope",
            ['spec.x: Invalid value: "nope": spec.x in body must be of type uuid: "nope"'],
        ),
        (
            {"type": "string", "format": "date"},
            5,
            ['spec.x: Invalid value: "int64": spec.x in body must be of type date: "int64"'],
        ),
        ({"type": "string", "format": "date"}, ["a list passes"], []),
        ({"type": "string", "format": "made-up"}, "x", []),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            ['spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"'],
        ),
        (
            {"type": "string", "not": {"enum": ["a"]}},
            "a",
            ['<nil>: Invalid value: "": "spec.x" must not validate the schema (not)'],
        ),
        (
            {"type": "string", "anyOf": [{"pattern": "^a"}, {"maxLength": 1}]},
            "bb",
            [
                '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
                "spec.x: Invalid value: \"bb\": spec.x in body should match '^a'",
            ],
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            ["a", "b", "a", "a"],
            ['spec.x[2]: Duplicate value: "a"'],
        ),
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            },
            [{"k": "a"}, {"k": "a"}],
            ['spec.x[1]: Duplicate value: {"k":"a"}'],
        ),
    ],
)
def test_validation_error_has_the_real_servers_message(schema, value, errors):
    assert field_errors(schema, value) == errors


@pytest.mark.parametrize(
    ("name", "valid_value", "invalid_value"),
    [
        ("date", "2024-01-01", "2024-02-30"),
        ("date-time", "2024-01-01t00:00:00.5+01:00", "2024-01-01T24:00:00Z"),
        ("duration", "5 days", "x"),
        ("ipv4", "010.0.0.1", "256.1.1.1"),
        ("ipv6", "::1", "fe80::1%eth0"),
        ("cidr", "::/0", "10.0.0.1/33"),
        ("mac", "0011.2233.4455", "00:11"),
        ("uri", "/path", "a b"),
        ("email", "A <a@b.c>", "a@b@c"),
        ("hostname", "a.example.com", "-a"),
        ("uuid4", "11111111-2222-4333-8444-555555555555", "11111111-2222-3333-4444-555555555555"),
        ("byte", "YWJj", "YW="),
        ("rgbcolor", "rgb(1,2,3)", "rgb(256,1,1)"),
        ("creditcard", "4111111111111111", "4111-1111-1111-1112"),
        ("isbn", "978-0321751041", "123"),
    ],
)
def test_format_is_validated(name, valid_value, invalid_value):
    assert field_errors({"type": "string", "format": name}, valid_value) == []
    assert field_errors({"type": "string", "format": name}, invalid_value) == [
        f'spec.x: Invalid value: "{invalid_value}": spec.x in body must be of type {name}: "{invalid_value}"'
    ]


def test_unchanged_value_is_not_validated():
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "string"}}}
    assert field_errors(schema, {"a": "long", "b": "new"}, {"a": "long", "b": "old"}) == []
    assert field_errors(schema, {"a": "longer"}, {"a": "long"}) == ["spec.x.a: Too long: may not be more than 1 bytes"]


def test_items_are_matched_with_old_items_by_key_only():
    items = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}
    old, new = [{"k": "a", "v": "long"}], [{"k": "b"}, {"k": "a", "v": "long"}]
    assert field_errors(keyed, new, old) == []
    assert len(field_errors({"type": "array", "items": items}, new, old)) == 1


def test_errors_of_a_status_have_its_path():
    node = structural.compile_schema({"type": "object", "properties": {"a": {"type": "string"}}})
    assert [(c.field, c.message) for c in validate_by_schema(node, {"a": 1}, under="status")] == [
        ("status.a", 'Invalid value: "integer": a in body must be of type string: "integer"')
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcx"), inner, max_size=3),
    max_leaves=8,
)
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "string", "default": "d"}}, "default": {}},
        "b": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


@given(st.dictionaries(st.sampled_from("abcx"), JSON, max_size=4))
def test_prune_and_defaults_are_idempotent_and_validate_never_raises(value):
    node = spec(SCHEMA["properties"])
    pruned, _ = prune(node, {"spec": value})
    assert prune(node, pruned) == (pruned, [])
    filled = apply_defaults(node, pruned)
    assert apply_defaults(node, filled) is filled
    validate(node, filled)
    validate(node, filled, filled)
