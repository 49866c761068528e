"""Rewrite the source of a rule for the engine, which lacks optional results of functions and sortBy()."""

import re
from typing import Final

LITERAL: Final = r"""r?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_LITERAL: Final = re.compile(LITERAL)
_CALL: Final = re.compile(r"(?<![\w.])format\s*\.\s*named\s*\(|\.\s*(validate|sortBy)\s*\(")
_SORT_BY: Final = re.compile(r"\.\s*(sortBy)\s*\(")
MAX_LENGTH: Final = 100_000  # Nested calls of sortBy() double the length of a rule, so the length is limited.
_OPENING: Final = {")": "(", "]": "[", "}": "{"}


def blank_literals(rule: str) -> str:
    """Return a rule with its string literals replaced by spaces."""
    return _LITERAL.sub(lambda literal: " " * len(literal[0]), rule)


def _replace_outside_literals(rule: str, pattern: str, replacement: str) -> str:
    pieces, copied_end = [], 0
    for literal in _LITERAL.finditer(rule):
        pieces += [re.sub(pattern, replacement, rule[copied_end : literal.start()]), literal[0]]
        copied_end = literal.end()
    return "".join([*pieces, re.sub(pattern, replacement, rule[copied_end:])])


def rewrite_for_evaluation(rule: str) -> str:
    """Return a rule with its calls of validate(), format.named() and sortBy() rewritten.

    A Python function cannot return an optional. So `validate` and `format.named` return an empty value instead of none,
    and `optional.ofNonZeroValue` converts that value to an optional.
    """
    return _rewrite(rule, _CALL)


def rewrite_for_check(rule: str) -> str:
    """Return a rule with its calls of sortBy() rewritten.

    The other calls stay, because declared functions can return optionals.
    """
    return _rewrite(rule, _SORT_BY)


def make_old_self_optional(rule: str) -> str:
    """Return a rule in which an optional replaces oldSelf, for rules with optionalOldSelf."""
    return _replace_outside_literals(rule, r"(?<![\w.])oldSelf\b", "(hasOld ? optional.of(oldSelf) : optional.none())")


def _rewrite(rule: str, calls: re.Pattern[str]) -> str:
    rule = rename_exists_one(rule)
    while len(rule) < MAX_LENGTH:
        masked = _LITERAL.sub(lambda literal: "_" * len(literal[0]), rule)
        call = calls.search(masked)
        if call is None:
            return rule
        end = find_closing(masked, call.end())
        arguments = rule[call.end() : end]
        if call[1] is None:
            rule = f"{rule[: call.start()]}optional.ofNonZeroValue(format.__named__({arguments})){rule[end + 1 :]}"
            continue
        start = _find_receiver(masked, call.start())
        before, receiver, after = rule[:start], rule[start : call.start()], rule[end + 1 :]
        if call[1] == "validate":
            rule = f"{before}optional.ofNonZeroValue({receiver}.__validate__({arguments})){after}"
        else:
            rule = f"{before}{receiver}.map({arguments}).__order__({receiver}){after}"
    return rule


def rename_exists_one(rule: str) -> str:
    """Rename exists_one() with two variables to existsOne(), the only name that the engine knows for it."""
    return _replace_outside_literals(rule, r"\.\s*exists_one(?=\s*\(\s*\w+\s*,\s*\w+\s*,)", ".existsOne")


def find_closing(rule: str, start: int) -> int:
    """Return the offset of the parenthesis that closes the one just before `start`."""
    depth = 1
    for at in range(start, len(rule)):
        depth += (rule[at] in "([{") - (rule[at] in ")]}")
        if not depth:
            return at
    return len(rule)


def _find_receiver(rule: str, end: int) -> int:
    """Return the offset at which the receiver of the method call at `end` begins."""
    at = len(rule[:end].rstrip())
    while at > 0:
        if rule[at - 1] in _OPENING:
            at = _find_opening(rule, at - 1)
            front = rule[:at].rstrip()
            if not re.search(r"[\w)\]]\Z", front) or re.search(r"(?<!\w)in\Z", front):
                return at  # A literal or a parenthesis, not a call or an index.
            at = len(front)
            continue
        while at > 0 and re.match(r"\w", rule[at - 1]):
            at -= 1
        front = rule[:at].rstrip().removesuffix("?").rstrip()
        if not front.endswith("."):
            return at
        at = len(front[:-1].rstrip())
    return at


def _find_opening(rule: str, at: int) -> int:
    depth = 0
    while at > 0:
        depth += (rule[at] in ")]}") - (rule[at] in "([{")
        if not depth:
            break
        at -= 1
    return at
