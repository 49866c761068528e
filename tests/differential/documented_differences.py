"""The differences in docs/explanation/differences.md, each recognized by the exact form of the two responses."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from recordings import Scenario

from .comparison import Difference, Response, compare_responses, extract_texts, is_text_difference

Step = dict[str, Any]
Recognizer = Callable[[Step, Response, Response, list[tuple[str, Any, Any]]], bool]
_SHOWN_VALUE = re.compile(r'(?:Invalid|Unsupported) value: (null|\{.*\}|"\{.*\}"|\[.*\]): ', re.DOTALL)
_UNDECLARED = re.compile(  # The real server reports one of several undeclared fields, and the errors before it.
    r"(errors:\n(  .*\n)*  )?\.\S+: field not declared in schema(\n  .*)*"
)
_UNKNOWN = re.compile(r'unknown field "[^"]*"(, unknown field "[^"]*")+')  # in the order of the shown object
_MISSING_IN = re.compile(r"is missing in '\{.*\}'", re.DOTALL)  # followed by the object
_RULE_TYPES = re.compile(r"(?<=selfType)\d+")  # generated type names of validation rules
_CONVERSION = re.compile(r"failed to convert new object: .*", re.DOTALL)  # to any of several versions
_DIFF = re.compile(r"\n@@.*", re.DOTALL)
_DEFINITIONS = "/customresourcedefinitions"


def _differs_in_shown_values(
    step: Step, real: Response, embedded: Response, differences: list[tuple[str, Any, Any]]
) -> bool:
    """Return whether only the text of a shown object differs, or the diff after "Forbidden".

    Also return true if both servers reject the result of a strategic merge patch with different decoding errors.
    """
    if not all(is_text_difference((0, *difference)) for difference in differences):
        return False
    is_strategic = step.get("type", "").startswith("application/strategic")
    is_undecodable = [cause[:2] for cause in _causes(real)] == [("FieldValueInvalid", "patch")]
    return (is_strategic and is_undecodable) or _remove_values(extract_texts(real)) == _remove_values(
        extract_texts(embedded)
    )


def _remove_values(texts: dict[str, Any]) -> Any:
    return {
        key: sorted(map(_remove_shown_values, value)) if isinstance(value, list) else _remove_shown_values(value)
        for key, value in texts.items()
    }


def _remove_shown_values(text: str) -> str:
    text = _SHOWN_VALUE.sub("Invalid value: …: ", _DIFF.sub("", text))
    for pattern in (_CONVERSION, _UNDECLARED, _MISSING_IN):
        text = pattern.sub("…", text)
    text = _RULE_TYPES.sub("", text)
    return _UNKNOWN.sub(lambda fields: ", ".join(sorted(fields[0].split(", "))), text)


def _causes(response: Response) -> list[tuple[str, str, str]]:
    body = response["body"]
    causes = (body.get("details") or {}).get("causes") or () if body.get("kind") == "Status" else ()
    return [(cause.get("reason"), cause.get("field"), str(cause.get("message"))) for cause in causes]


RECOGNIZERS: dict[str, Recognizer] = {
    "Texts": _differs_in_shown_values,
}


def find_undocumented(
    scenario: Scenario, played: Iterable[tuple[int, Response, Response]]
) -> tuple[list[Difference], set[str]]:
    """Return the undocumented differences of the first step that has any, and the names of the documented ones.

    After a documented difference in more than texts, the servers have different objects: later steps are ignored.
    """
    names: set[str] = set()
    for index, real, embedded in played:
        differences = compare_responses(real, embedded)
        if not differences:
            continue
        step = scenario["steps"][index] if index >= 0 else {"do": "POST", "path": _DEFINITIONS}
        recognized = (name for name, recognize in RECOGNIZERS.items() if recognize(step, real, embedded, differences))
        name = next(recognized, None)
        if name is None:
            return [(index, *difference) for difference in differences], names
        names.add(name)
        if name != "Texts":
            return [], names
    return [], names
