"""The differences of docs/explanation/differences.md, each recognised by its exact shape in the two answers."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from .playing import Answer, Difference, Scenario, compared, is_text, texts

Step = dict[str, Any]
Recognise = Callable[[Step, Answer, Answer, list[tuple[str, Any, Any]]], bool]
_SHOWN = re.compile(r'(?:Invalid|Unsupported) value: (null|\{.*\}|"\{.*\}"|\[.*\]): ', re.DOTALL)
_UNDECLARED = re.compile(  # any one of several, and what else is wrong in what it looked at before
    r"(errors:\n(  .*\n)*  )?\.\S+: field not declared in schema(\n  .*)*"
)
_UNKNOWN = re.compile(r'unknown field "[^"]*"(, unknown field "[^"]*")+')  # in the order of the object shown
_REPEATED = re.compile(r"is missing in '\{.*\}'", re.DOTALL)  # the object once more
_TYPES = re.compile(r"(?<=selfType)\d+")  # a rule's objects, by names that are new each time
_CONVERTED = re.compile(r"failed to convert new object: .*", re.DOTALL)  # to any one of several versions
_CUT = re.compile(r"\n@@.*", re.DOTALL)
_DEFINITIONS = "/customresourcedefinitions"


def _texts(step: Step, real: Answer, ours: Answer, found: list[tuple[str, Any, Any]]) -> bool:
    """All is alike but how a whole object is shown in "Invalid value", or the diff behind "Forbidden".

    Or both say that a strategic merge patch makes no object of the kind, each in the words of its decoder.
    """
    if not all(is_text((0, *one)) for one in found):
        return False
    strategic = step.get("type", "").startswith("application/strategic")
    undecodable = [cause[:2] for cause in _causes(real)] == [("FieldValueInvalid", "patch")]
    return (strategic and undecodable) or _bare(texts(real)) == _bare(texts(ours))


def _bare(said: dict[str, Any]) -> Any:
    return {
        key: sorted(_stripped(one) for one in value) if isinstance(value, list) else _stripped(value)
        for key, value in said.items()
    }


def _stripped(text: str) -> str:
    text = _SHOWN.sub("Invalid value: …: ", _CUT.sub("", text))
    for pattern in (_CONVERTED, _UNDECLARED, _REPEATED):
        text = pattern.sub("…", text)
    text = _TYPES.sub("", text)
    return _UNKNOWN.sub(lambda listed: ", ".join(sorted(listed[0].split(", "))), text)


def _causes(answer: Answer) -> list[tuple[str, str, str]]:
    body = answer["body"]
    causes = (body.get("details") or {}).get("causes") or () if body.get("kind") == "Status" else ()
    return [(cause.get("reason"), cause.get("field"), str(cause.get("message"))) for cause in causes]


KNOWN: dict[str, Recognise] = {
    "Texts": _texts,
}


def sorted_out(scenario: Scenario, played: Iterable[tuple[int, Answer, Answer]]) -> tuple[list[Difference], set[str]]:
    """The differences that are not documented, and the names of those that are.

    Where a documented one changed more than texts, both servers went on from different objects: the rest follows.
    """
    names: set[str] = set()
    for index, real, ours in played:
        found = compared(real, ours)
        if not found:
            continue
        step = scenario["steps"][index] if index >= 0 else {"do": "POST", "path": _DEFINITIONS}
        name = next((name for name, recognise in KNOWN.items() if recognise(step, real, ours, found)), None)
        if name is None:
            return [(index, *one) for one in found], names
        names.add(name)
        if name != "Texts":
            return [], names
    return [], names
