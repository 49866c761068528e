"""A schema's types as the engine knows types: what has declared fields is a protobuf message."""

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
_RESERVED: Final = range(19000, 20000)  # numbers of fields that no message may use


class Messages:
    """The messages of one type, in a pool of their own if there are any."""

    def __init__(self, root: Type) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, timestamp_pb2

        self._kinds = descriptor_pb2.FieldDescriptorProto
        self._file = descriptor_pb2.FileDescriptorProto(name="self.proto")
        self._paths: list[str] = []
        self.exact = True  # whether all types are known
        self.variables: dict[str, str] = {}  # such fields, by names with dots
        self.root = self._outside(root, "selfType")
        self.pool = descriptor_pool.DescriptorPool() if self._paths else None
        if self.pool is not None:
            for known in (duration_pb2, struct_pb2, timestamp_pb2):
                self.pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
                self._file.dependency.append(known.DESCRIPTOR.name)
            self.pool.Add(self._file)

    def told(self, text: str) -> str:
        """A text of the engine with the messages named by where they stand."""
        return _NAME.sub(lambda found: self._paths[int(found[1])], text)

    def _outside(self, of: Type, path: str) -> str:
        """The type of a variable, as declarations write it."""
        if of.kind == "list" and of.element is not None:
            return f"list({self._outside(of.element, f'{path}.@idx')})"
        if of.kind == "map" and of.element is not None:
            return f"map(string, {self._outside(of.element, f'{path}.@elem')})"
        return self._message(of, path) if of.kind == "object" else of.kind

    def _message(self, of: Type, path: str) -> str:
        name = f"selfType_{len(self._paths)}"
        self._paths.append(path)
        message = self._file.message_type.add(name=name)
        message.options.deprecated_legacy_json_field_conflicts = True  # a_b beside aB; their JSON is of no interest
        number = 0
        for key, inner in (of.fields or {}).items():
            if not _FIELD.fullmatch(key):
                continue  # no rule can name it
            number = number + 1 if number + 1 not in _RESERVED else _RESERVED.stop
            self._field(message, key, number, inner, f"{path}.{key}")
        return name

    def _field(self, message: Any, key: str, number: int, of: Type, path: str) -> None:
        label, element = self._kinds.LABEL_OPTIONAL, of.element
        entry = f"{''.join(part[:1].upper() + part[1:] for part in key.split('_'))}Entry"
        if element is None:
            typed = self._typed(of, path)
        elif element.kind in ("list", "map") or any(one.name == entry for one in message.nested_type):
            typed = self._loose(of, path)  # a list of lists, or the map a_b beside aB
        else:
            label = self._kinds.LABEL_REPEATED
            typed = self._typed(element, f"{path}.@idx" if of.kind == "list" else f"{path}.@elem")
            if of.kind == "map":
                nested = message.nested_type.add(name=entry)
                nested.options.map_entry = True
                nested.field.add(name="key", number=1, type=self._kinds.TYPE_STRING, label=self._kinds.LABEL_OPTIONAL)
                nested.field.add(name="value", number=2, label=self._kinds.LABEL_OPTIONAL, **typed)
                typed = self._of(f"{message.name}.{entry}")
        message.field.add(name=key, number=number, json_name=str(number), label=label, **typed)

    def _typed(self, of: Type, path: str) -> dict[str, Any]:
        if of.kind in _SCALARS:
            return {"type": getattr(self._kinds, f"TYPE_{_SCALARS[of.kind]}")}
        return self._of(self._message(of, path)) if of.kind == "object" else self._of(_WELL_KNOWN[of.kind])

    def _loose(self, of: Type, path: str) -> dict[str, Any]:
        """A field of a type that no message can have: what is in it is not known, unless it has a name of its own."""
        if "@" in path:
            self.exact = False
        else:
            self.variables[path.removeprefix("selfType.")] = self._outside(of, path)
        return self._of(_WELL_KNOWN[of.kind])

    def _of(self, name: str) -> dict[str, Any]:
        return {"type": self._kinds.TYPE_MESSAGE, "type_name": f".{name}"}
