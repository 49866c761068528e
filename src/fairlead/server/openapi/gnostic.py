"""OpenAPI v2 as protobuf, the only format that kubectl requests when it validates objects on the client.

kubectl does so for a List and for old clusters. The field numbers are those of gnostic's openapi.v2 messages. Only the
fields that our documents use are supported.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

REQUESTED_MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"  # A response's media type has no @.
_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_NUMBERS: Final = {
    "maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15, "maxProperties": 17, "minProperties": 18,
}  # fmt: skip
_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def encode(document: dict[str, Any]) -> bytes:
    """Encode a Swagger 2.0 document as an openapi.v2.Document message."""
    info = document["info"]
    paths = b"".join(
        _encode_message(2, _encode_named_value(path, _encode_path_item(item)))
        for path, item in document["paths"].items()
    )
    definitions = b"".join(
        _encode_message(1, _encode_named_value(name, _encode_schema(item)))
        for name, item in document["definitions"].items()
    )
    return (
        _encode_text(1, document["swagger"])
        + _encode_message(2, _encode_text(1, info["title"]) + _encode_text(2, info["version"]))
        + _encode_message(8, paths)
        + _encode_message(9, definitions)
    )


def _encode_schema(schema: dict[str, Any]) -> bytes:
    encoded_fields: list[bytes] = []
    for key, value in schema.items():
        if key in _TEXTS:
            encoded_fields.append(_encode_text(_TEXTS[key], value))
        elif key in _NUMBERS:
            encoded_fields.append(_encode_number(_NUMBERS[key], value))
        elif key == "type":
            encoded_fields.append(_encode_message(22, _encode_text(1, value)))
        elif key == "required":
            encoded_fields += [_encode_text(19, name) for name in value]
        elif key == "default":
            encoded_fields.append(_encode_message(5, _encode_any(value)))
        elif key == "enum":
            encoded_fields += [_encode_message(20, _encode_any(item)) for item in value]
        elif key == "properties":
            encoded_fields.append(
                _encode_message(
                    25,
                    b"".join(
                        _encode_message(1, _encode_named_value(n, _encode_schema(item))) for n, item in value.items()
                    ),
                )
            )
        elif key == "items":
            encoded_fields.append(_encode_message(23, _encode_message(1, _encode_schema(value))))
        elif key == "additionalProperties":
            encoded_fields.append(
                _encode_message(
                    21, _encode_number(2, 1) if value is True else _encode_message(1, _encode_schema(value or {}))
                )
            )
        elif key.startswith("x-"):
            encoded_fields.append(_encode_extension(31, key, value))
    return b"".join(encoded_fields)


def _encode_path_item(item: dict[str, Any]) -> bytes:
    operations = [(method, operation) for method, operation in item.items() if method in _METHODS]
    return b"".join(_encode_message(_METHODS[method], _encode_operation(operation)) for method, operation in operations)


def _encode_operation(operation: dict[str, Any]) -> bytes:
    encoded_fields = [_encode_text(5, operation["operationId"])]
    encoded_fields += [_encode_text(6, media) for media in operation["produces"]] + [
        _encode_text(7, media) for media in operation["consumes"]
    ]
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            query = _encode_text(2, "query") + _encode_text(4, parameter["name"]) + _encode_text(6, parameter["type"])
            encoded_fields.append(_encode_message(8, _encode_message(1, _encode_message(2, _encode_message(3, query)))))
    encoded_fields += [_encode_extension(13, key, value) for key, value in operation.items() if key.startswith("x-")]
    return b"".join(encoded_fields)


def _encode_named_value(name: str, value: bytes) -> bytes:
    return _encode_text(1, name) + _encode_message(2, value)


def _encode_extension(field: int, key: str, value: Any) -> bytes:
    return _encode_message(field, _encode_named_value(key, _encode_any(value)))


def _encode_any(value: Any) -> bytes:
    return _encode_text(2, json.dumps(value) + "\n")  # The message takes YAML, and JSON is YAML.


def _encode_text(field: int, value: str) -> bytes:
    return _encode_message(field, value.encode())


def _encode_message(field: int, data: bytes) -> bytes:
    return bytes(_encode_varint(field << 3 | 2)) + bytes(_encode_varint(len(data))) + data


def _encode_number(field: int, value: int) -> bytes:
    return bytes(_encode_varint(field << 3)) + bytes(_encode_varint(value))


def _encode_varint(value: int) -> Iterable[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value
