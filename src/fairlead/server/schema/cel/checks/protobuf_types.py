"""Convert the types of a schema to the engine's types. An object with declared fields becomes a protobuf message."""

import re
from typing import Any, Final

from fairlead.server.schema.cel.types import Type

_NAME: Final = re.compile(r"selfType_(\d+)")
_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WELL_KNOWN: Final = {
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "list": "google.protobuf.ListValue",
    "map": "google.protobuf.Struct",
    "dyn": "google.protobuf.Value",
}
_SCALARS: Final = {"bool": "BOOL", "int": "INT64", "double": "DOUBLE", "string": "STRING", "bytes": "BYTES"}
_RESERVED: Final = range(19000, 20000)  # Protobuf reserves these field numbers.


class ProtobufTypes:
    """The protobuf messages of one schema in a descriptor pool of their own.

    `pool` is None if the schema has no objects.
    """

    def __init__(self, root: Type) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, timestamp_pb2

        self._field_proto = descriptor_pb2.FieldDescriptorProto
        self._file = descriptor_pb2.FileDescriptorProto(name="self.proto")
        self._paths: list[str] = []
        self.is_exact = True  # Whether all types are known.
        self.variables: dict[str, str] = {}  # The types of fields that no message can have, by dotted path.
        self.root = self._declare_variable_type(root, "selfType")
        self.pool = descriptor_pool.DescriptorPool() if self._paths else None
        if self.pool is not None:
            for module in (duration_pb2, struct_pb2, timestamp_pb2):
                self.pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
                self._file.dependency.append(module.DESCRIPTOR.name)
            self.pool.Add(self._file)

    def replace_type_names(self, error_text: str) -> str:
        """Return an error text in which message names are replaced by their paths in the schema."""
        return _NAME.sub(lambda match: self._paths[int(match[1])], error_text)

    def _declare_variable_type(self, value_type: Type, path: str) -> str:
        """Return the type of a variable in the syntax of function declarations, such as list(string)."""
        if value_type.kind == "list" and value_type.element is not None:
            return f"list({self._declare_variable_type(value_type.element, f'{path}.@idx')})"
        if value_type.kind == "map" and value_type.element is not None:
            return f"map(string, {self._declare_variable_type(value_type.element, f'{path}.@elem')})"
        return self._add_message(value_type, path) if value_type.kind == "object" else value_type.kind

    def _add_message(self, value_type: Type, path: str) -> str:
        name = f"selfType_{len(self._paths)}"
        self._paths.append(path)
        message = self._file.message_type.add(name=name)
        message.options.deprecated_legacy_json_field_conflicts = True  # Allows a_b beside aB. Their JSON is not used.
        number = 0
        for key, inner in (value_type.fields or {}).items():
            if not _FIELD.fullmatch(key):
                continue  # A rule cannot name it.
            number = number + 1 if number + 1 not in _RESERVED else _RESERVED.stop
            self._add_field(message, key, number, inner, f"{path}.{key}")
        return name

    def _add_field(self, message: Any, key: str, number: int, value_type: Type, path: str) -> None:
        label, element = self._field_proto.LABEL_OPTIONAL, value_type.element
        entry = f"{''.join(part[:1].upper() + part[1:] for part in key.split('_'))}Entry"
        if element is None:
            field_type = self._declare_field_type(value_type, path)
        elif element.kind in ("list", "map") or any(nested.name == entry for nested in message.nested_type):
            field_type = self._declare_inexact_type(value_type, path)  # A list of lists, or the map a_b beside aB.
        else:
            label = self._field_proto.LABEL_REPEATED
            field_type = self._declare_field_type(
                element, f"{path}.@idx" if value_type.kind == "list" else f"{path}.@elem"
            )
            if value_type.kind == "map":
                nested = message.nested_type.add(name=entry)
                nested.options.map_entry = True
                nested.field.add(
                    name="key", number=1, type=self._field_proto.TYPE_STRING, label=self._field_proto.LABEL_OPTIONAL
                )
                nested.field.add(name="value", number=2, label=self._field_proto.LABEL_OPTIONAL, **field_type)
                field_type = self._declare_message_type(f"{message.name}.{entry}")
        message.field.add(name=key, number=number, json_name=str(number), label=label, **field_type)

    def _declare_field_type(self, value_type: Type, path: str) -> dict[str, Any]:
        if value_type.kind in _SCALARS:
            return {"type": getattr(self._field_proto, f"TYPE_{_SCALARS[value_type.kind]}")}
        if value_type.kind == "object":
            return self._declare_message_type(self._add_message(value_type, path))
        return self._declare_message_type(_WELL_KNOWN[value_type.kind])

    def _declare_inexact_type(self, value_type: Type, path: str) -> dict[str, Any]:
        """Return a well-known type for a field whose type a protobuf message cannot express.

        A field that `self` reaches by names alone is also declared as a variable with its exact type.
        """
        if "@" in path:
            self.is_exact = False
        else:
            self.variables[path.removeprefix("selfType.")] = self._declare_variable_type(value_type, path)
        return self._declare_message_type(_WELL_KNOWN[value_type.kind])

    def _declare_message_type(self, name: str) -> dict[str, Any]:
        return {"type": self._field_proto.TYPE_MESSAGE, "type_name": f".{name}"}
