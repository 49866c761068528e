"""YAML as a real server reads it: the first document, YAML 1.1's words for true and false, JSON's types.

Dates stay texts, base-60 numbers do not exist, keys become texts, and whole floats become integers on their way
through JSON.
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
_PLAIN: Final = "plain"  # the tag of a scalar that is neither quoted nor tagged
_TAG: Final = "tag:yaml.org,2002:"
_ALIASED: Final = 400_000  # values that aliases may add to a document; Go's reader begins to refuse there


class Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """Composes nodes only; what scalars mean is said here."""


Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


def read(body: bytes) -> tuple[Any, list[str]]:
    """The first document, and a line for each key that is set twice (the last one counts). Raises encoding.BadJSON."""
    if body.lstrip()[:1] == b"{":
        try:
            value, twice = encoding.decode(body)
        except encoding.BadJSON:
            pass  # YAML allows more
        else:
            if not twice and not _beyond_yaml(body):
                return encoding.settled(value), []
    twice = []
    loader = Loader(body)
    try:
        node = loader.get_node() if loader.check_node() else None
        return (None if node is None else _Reader(len(body), twice).value(node)), twice
    except yaml.YAMLError as error:
        raise _bad(_told(error)) from None
    except RecursionError:
        raise _bad("exceeded max depth of 10000") from None
    except ValueError as error:
        raise _bad(str(error)) from None
    finally:
        loader.dispose()


_ESCAPED: Final = re.compile(rb"\\(?:(u[dD][89a-fA-F])|(/)|.)", re.DOTALL)


def _beyond_yaml(json: bytes) -> bool:
    """Whether a JSON text holds what YAML reads otherwise or not at all. Refuses an escaped slash, which it has not."""
    for found in _ESCAPED.finditer(json) if b"\\" in json else ():
        if found[2]:
            line = json.count(b"\n", 0, found.start())
            raise _bad(f"{f'line {line + 1}: ' if line else ''}found unknown escape character")
        if found[1]:
            return True
    return gojson.NOT_YAML.search(json) is not None or not _is_utf8(json)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _bad(problem: str) -> encoding.BadJSON:
    return encoding.BadJSON(f"error converting YAML to JSON: yaml: {problem}")


def _told(error: yaml.YAMLError) -> str:
    """A parser's complaint with the line that a real server names."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    line = 0
    if mark is not None and mark.line:
        line = mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif context is not None:
        line = context.line
    return f"line {line}: {problem}" if line else problem


class _Reader:
    def __init__(self, size: int, twice: list[str]) -> None:
        self._twice = twice
        self._left = size + _ALIASED
        self._inside: set[int] = set()

    def value(self, node: yaml.Node) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ValueError("document contains excessive aliasing")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if id(node) in self._inside:
            raise ValueError("anchor value contains itself")
        self._inside.add(id(node))
        out: Any = self._map(node) if isinstance(node, yaml.MappingNode) else [self.value(item) for item in node.value]
        self._inside.discard(id(node))
        return out

    def _map(self, node: yaml.MappingNode) -> dict[str, Any]:
        out: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, below in node.value:
            if key.tag == _PLAIN and key.value == "<<":
                self._merge(below, merged)
                continue
            name = _key(self.value(key))
            if name in out:
                self._twice.append(f'line {key.start_mark.line + 1}: key "{name}" already set in map')
            out[name] = self.value(below)
        return {**merged, **out} if merged else out

    def _merge(self, node: yaml.Node, into: dict[str, Any]) -> None:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in reversed(sources):
            if not isinstance(source, yaml.MappingNode):
                raise ValueError("map merge requires map or sequence of maps as the value")
            into.update(self.value(source))


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.tag == _PLAIN:
        return plain(text)
    if node.tag in (f"{_TAG}int", f"{_TAG}float", f"{_TAG}bool", f"{_TAG}null"):
        return plain(text)
    return text


def plain(text: str) -> Any:
    """What an unquoted scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if not text or (text[0] not in "+-." and not text[0].isdigit()):
        return text
    if _SPECIAL.fullmatch(text):
        raise ValueError(f"json: unsupported value: {text}")
    bare = text.replace("_", "") if text[0] != "." else text
    if found := _INTEGER.fullmatch(bare):
        sign, sixteen, two, eight, ten = found.groups()
        bases = ((sixteen, 16), (two, 2), (eight, 8), (ten, 10))
        number = next(int(digits, base) for digits, base in bases if digits is not None) * (-1 if sign == "-" else 1)
        if -(2**63) <= number < 2**63:
            return number
        return float(number) if abs(number) < 2**64 or ten is not None else text
    if _FLOAT.fullmatch(bare):
        value = float(bare)
        return text if value in (float("inf"), float("-inf")) else encoding.written(value)
    return text


def _key(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"unsupported map key: {value}")
