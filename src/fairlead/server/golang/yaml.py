"""YAML as a real server reads it: only the first document, with YAML 1.1 booleans such as `yes`, and JSON's types.

Dates stay strings. There are no base-60 numbers. Keys become strings. Whole floats become integers.
"""

import re
from typing import Any, Final

import yaml

from fairlead.api import gojson
from fairlead.server.golang import encoding

_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
}
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_PLAIN: Final = "plain"  # The tag that the loader gives to a scalar without quotes and without a tag.
_TAG: Final = "tag:yaml.org,2002:"
_MAX_ALIASED_VALUES: Final = 400_000  # Aliases may add this many values to a document. Go's reader has the same limit.


class Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """A PyYAML loader that only builds nodes. `parse_plain_scalar` converts the scalars to values."""


Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


def read(body: bytes) -> tuple[Any, list[str]]:
    """Return the first YAML document, and a message for each duplicate key. The last value of a duplicate key wins.

    Raises encoding.BadJSON if the body is neither YAML nor JSON.
    """
    if body.lstrip()[:1] == b"{":
        try:
            value, duplicates = encoding.decode(body)
        except encoding.BadJSON:
            pass  # YAML allows more than JSON.
        else:
            if not duplicates and not _needs_yaml_reader(body):
                return encoding.normalize_numbers(value), []
    duplicates = []
    loader = Loader(body)
    try:
        node = loader.get_node() if loader.check_node() else None
        return (None if node is None else _Reader(len(body), duplicates).value(node)), duplicates
    except yaml.YAMLError as error:
        raise _build_yaml_error(_format_parser_error(error)) from None
    except RecursionError:
        raise _build_yaml_error("exceeded max depth of 10000") from None
    except ValueError as error:
        raise _build_yaml_error(str(error)) from None
    finally:
        loader.dispose()


_ESCAPED: Final = re.compile(rb"\\(?:(u[dD][89a-fA-F])|(/)|.)", re.DOTALL)


def _needs_yaml_reader(json: bytes) -> bool:
    r"""Return whether a YAML parser reads this JSON text differently from a JSON parser.

    Raises encoding.BadJSON for the escape `\/`, which YAML does not know.
    """
    for escape in _ESCAPED.finditer(json) if b"\\" in json else ():
        if escape[2]:
            line = json.count(b"\n", 0, escape.start())
            raise _build_yaml_error(f"{f'line {line + 1}: ' if line else ''}found unknown escape character")
        if escape[1]:
            return True
    return gojson.INVALID_IN_YAML.search(json) is not None or not _is_utf8(json)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _build_yaml_error(problem: str) -> encoding.BadJSON:
    return encoding.BadJSON(f"error converting YAML to JSON: yaml: {problem}")


def _format_parser_error(error: yaml.YAMLError) -> str:
    """Return the message of a PyYAML error with the line number that a real server reports."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    line = 0
    if mark is not None and mark.line:
        line = mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif context is not None:
        line = context.line
    return f"line {line}: {problem}" if line else problem


class _Reader:
    """Converts YAML nodes to values, and collects the messages about duplicate keys."""

    def __init__(self, size: int, duplicates: list[str]) -> None:
        self._duplicates = duplicates
        self._remaining_values = size + _MAX_ALIASED_VALUES
        self._open_nodes: set[int] = set()  # The ids of the containers around the current node.

    def value(self, node: yaml.Node) -> Any:
        self._remaining_values -= 1
        if self._remaining_values < 0:
            raise ValueError("document contains excessive aliasing")
        if isinstance(node, yaml.ScalarNode):
            return _convert_scalar(node)
        if id(node) in self._open_nodes:
            raise ValueError("anchor value contains itself")
        self._open_nodes.add(id(node))
        items = node.value
        result: Any = (
            self._convert_map(node) if isinstance(node, yaml.MappingNode) else [self.value(item) for item in items]
        )
        self._open_nodes.discard(id(node))
        return result

    def _convert_map(self, node: yaml.MappingNode) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == _PLAIN and key.value == "<<":
                self._merge_keys(value, merged)
                continue
            name = _convert_key(self.value(key))
            if name in result:
                self._duplicates.append(f'line {key.start_mark.line + 1}: key "{name}" already set in map')
            result[name] = self.value(value)
        return {**merged, **result} if merged else result

    def _merge_keys(self, node: yaml.Node, into: dict[str, Any]) -> None:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in reversed(sources):
            if not isinstance(source, yaml.MappingNode):
                raise ValueError("map merge requires map or sequence of maps as the value")
            into.update(self.value(source))


def _convert_scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.tag == _PLAIN:
        return parse_plain_scalar(text)
    if node.tag in (f"{_TAG}int", f"{_TAG}float", f"{_TAG}bool", f"{_TAG}null"):
        return parse_plain_scalar(text)
    return text


def parse_plain_scalar(text: str) -> Any:
    """Return the value of an unquoted YAML scalar, for example True for `yes` and 8 for `010`."""
    if text in _WORDS:
        return _WORDS[text]
    if not text or (text[0] not in "+-." and not text[0].isdigit()):
        return text
    if _SPECIAL.fullmatch(text):
        raise ValueError(f"json: unsupported value: {text}")
    digits_only = text.replace("_", "") if text[0] != "." else text
    if match := _INTEGER.fullmatch(digits_only):
        sign, hexadecimal, binary, octal, decimal = match.groups()
        bases = ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10))
        number = next(int(digits, base) for digits, base in bases if digits is not None) * (-1 if sign == "-" else 1)
        if -(2**63) <= number < 2**63:
            return number
        return float(number) if abs(number) < 2**64 or decimal is not None else text
    if _FLOAT.fullmatch(digits_only):
        value = float(digits_only)
        return text if value in (float("inf"), float("-inf")) else encoding.normalize_float(value)
    return text


def _convert_key(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"unsupported map key: {value}")
