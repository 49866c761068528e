"""Compare normalized responses."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from recordings.files import Scenario

Difference = tuple[str, Any, Any]  # path, expected, actual
_TIME_IN_TEXT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Mismatch(NamedTuple):
    """One difference between the recorded response and the actual one."""

    step: int
    request: str
    path: str
    expected: Any
    actual: Any


def find_mismatches(scenario: Scenario, responses: list[Any], compares_messages: bool = False) -> Iterator[Mismatch]:
    """Yield the differences between the recorded responses of the scenario and `responses`.

    Warnings, and the messages and the order of causes in failures, are compared only with `compares_messages`.
    """
    for index, (step, response) in enumerate(zip(scenario["steps"], responses, strict=True)):
        if step["do"] == "SETTLE":
            continue
        expected, actual = dict(step["expect"]), dict(response)
        if not compares_messages:
            expected.pop("warnings", None)
            actual.pop("warnings", None)
        for difference in find_differences(expected, actual, "", compares_messages):
            yield Mismatch(index, f"{step['do']} {step['path']}", *difference)


def format_mismatch(mismatch: Mismatch) -> str:
    return "\n".join(
        [
            f"  step {mismatch.step} {mismatch.request}: {mismatch.path}",
            f"      want {json.dumps(mismatch.expected)[:400]}",
            f"      got  {json.dumps(mismatch.actual)[:400]}",
        ]
    )


def find_differences(expected: Any, actual: Any, path: str = "", compares_messages: bool = False) -> list[Difference]:
    """Return the differences of two normalized values."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _compare_maps(expected, actual, path, compares_messages)
    if isinstance(expected, list) and isinstance(actual, list):
        differences: list[Difference] = []
        if len(expected) != len(actual):
            differences.append((f"{path}.length", len(expected), len(actual)))
        for index, pair in enumerate(zip(expected, actual, strict=False)):
            differences += find_differences(*pair, f"{path}[{index}]", compares_messages)
        return differences
    if path.endswith(".message") and isinstance(expected, str) and isinstance(actual, str):
        expected, actual = _TIME_IN_TEXT.sub("<time>", expected), _TIME_IN_TEXT.sub("<time>", actual)
    return [] if expected == actual and type(expected) is type(actual) else [(path or ".", expected, actual)]


def _compare_maps(
    expected: dict[str, Any], actual: dict[str, Any], path: str, compares_messages: bool
) -> list[Difference]:
    is_failure = expected.get("kind") == "Status" and expected.get("status") == "Failure" and not compares_messages
    differences: list[Difference] = []
    for key in sorted(set(expected) | set(actual)):
        key_path = f"{path}.{key}"
        if is_failure and key == "message":
            continue
        if is_failure and key == "details":
            pair = _sort_causes(expected.get(key)), _sort_causes(actual.get(key))
            differences += find_differences(*pair, key_path)
        elif key not in expected:
            differences.append((key_path, "absent", actual[key]))
        elif key not in actual:
            differences.append((key_path, expected[key], "absent"))
        else:
            differences += find_differences(expected[key], actual[key], key_path, compares_messages)
    return differences


def _sort_causes(details: dict[str, Any] | None) -> dict[str, Any]:
    """Return details with sorted causes that have only a reason and a field. A real server's order is random."""
    causes = (details or {}).get("causes") or []
    texts = sorted(json.dumps({key: cause.get(key) for key in ("reason", "field")}, sort_keys=True) for cause in causes)
    return {**(details or {}), "causes": texts}
