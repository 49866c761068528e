"""What the engine cannot say, said in what it can: results that may be none, and sorting by a key."""

import re
from typing import Final

LITERAL: Final = r"""r?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_LITERAL: Final = re.compile(LITERAL)
_CALL: Final = re.compile(r"(?<![\w.])format\s*\.\s*named\s*\(|\.\s*(validate|sortBy)\s*\(")
_SORT_BY: Final = re.compile(r"\.\s*(sortBy)\s*\(")
LONGEST: Final = 100_000  # characters of a rule: sorting what was sorted says it twice each time
_OPENED: Final = {")": "(", "]": "[", "}": "{"}


def spoken(text: str) -> str:
    """A rule with its string literals blanked out."""
    return _LITERAL.sub(lambda literal: " " * len(literal[0]), text)


def replaced(text: str, pattern: str, by: str) -> str:
    """Replace outside string literals."""
    pieces, done = [], 0
    for literal in _LITERAL.finditer(text):
        pieces += [re.sub(pattern, by, text[done : literal.start()]), literal[0]]
        done = literal.end()
    return "".join([*pieces, re.sub(pattern, by, text[done:])])


def rewritten(text: str) -> str:
    """The rule, for running, with each such call made of others.

    A function cannot answer an optional, so `validate` and `format.named` answer something empty, made one of here.
    """
    return _rewritten(text, _CALL)


def checkable(text: str) -> str:
    """The rule, for checking: functions that are only declared answer what they like."""
    return _rewritten(text, _SORT_BY)


def with_optional_old(text: str) -> str:
    """The rule with an oldSelf that may be none."""
    return replaced(text, r"(?<![\w.])oldSelf\b", "(hasOld ? optional.of(oldSelf) : optional.none())")


def _rewritten(text: str, calls: re.Pattern[str]) -> str:
    text = two_variables(text)
    while len(text) < LONGEST:
        masked = _LITERAL.sub(lambda literal: "_" * len(literal[0]), text)
        call = calls.search(masked)
        if call is None:
            return text
        end = closing(masked, call.end())
        given = text[call.end() : end]
        if call[1] is None:
            text = f"{text[: call.start()]}optional.ofNonZeroValue(format.__named__({given})){text[end + 1 :]}"
            continue
        start = _receiver(masked, call.start())
        before, receiver, after = text[:start], text[start : call.start()], text[end + 1 :]
        if call[1] == "validate":
            text = f"{before}optional.ofNonZeroValue({receiver}.__validate__({given})){after}"
        else:
            text = f"{before}{receiver}.map({given}).__order__({receiver}){after}"
    return text


def two_variables(text: str) -> str:
    """The rule with loops of two variables under the one name that the engine has for them."""
    return replaced(text, r"\.\s*exists_one(?=\s*\(\s*\w+\s*,\s*\w+\s*,)", ".existsOne")


def closing(text: str, start: int) -> int:
    """Where the parenthesis closes that was opened before `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if not depth:
            return at
    return len(text)


def _receiver(text: str, end: int) -> int:
    """Where the expression begins that ends, with a call on it, at `end`."""
    at = len(text[:end].rstrip())
    while at > 0:
        if text[at - 1] in _OPENED:
            at = _opening(text, at - 1)
            front = text[:at].rstrip()
            if not re.search(r"[\w)\]]\Z", front) or re.search(r"(?<!\w)in\Z", front):
                return at  # a literal or parentheses, not a call or an index
            at = len(front)
            continue
        while at > 0 and re.match(r"\w", text[at - 1]):
            at -= 1
        front = text[:at].rstrip().removesuffix("?").rstrip()
        if not front.endswith("."):
            return at
        at = len(front[:-1].rstrip())
    return at


def _opening(text: str, at: int) -> int:
    depth = 0
    while at > 0:
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if not depth:
            break
        at -= 1
    return at
