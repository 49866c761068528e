"""Validation of the Pod failure policies and success policies of Jobs."""

from typing import Final

from fairlead.api.gojson import quote_go
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.formats import qualified_name
from fairlead.server.registry.validation.rules import Errors, Rule, Scope, apply, each, field, go_struct, inside

NEEDS_INDEXED: Final = "requires indexed completion mode"
_MAX_RULES: Final = 20
_MAX_CODES: Final = 255
_MAX_INDEXES_LENGTH: Final = 64 * 1024


def _require_word(key: str, *allowed: str) -> Rule:
    """Require one of the `allowed` values. The error message lists them as Go's %q does."""
    return field(key).required_enum(*allowed, detail=f"valid values: [{' '.join(map(quote_go, allowed))}]")


def _check_exit_codes(codes: Scope) -> Errors:
    values, container = codes.items("values"), codes.get("containerName")
    pod = codes.parent.parent.parent.inside("template.spec")
    names = {item.get("name") for key in ("containers", "initContainers") for item in pod.items(key)}
    if container is not None and container not in names:
        message = "must be one of the container or initContainer names in the pod template"
        yield codes.invalid("containerName", message)
    if not values:
        yield codes.invalid("values", "at least one value is required")
    elif len(values) > _MAX_CODES:
        yield codes.too_many("values", len(values), _MAX_CODES)
    for index, code in enumerate(values):
        if codes.get("operator") == "In" and code == 0:
            yield codes.invalid(f"values[{index}]", "must not be 0 for the In operator", code)
        if code in values[:index]:
            yield codes.duplicate(f"values[{index}]", code)
    if list(values) != sorted(values):
        yield codes.invalid("values", "must be ordered")


def _check_codes_or_conditions(rule: Scope) -> Errors:
    has_codes, has_conditions = rule.get("onExitCodes") is not None, bool(rule.get("onPodConditions"))
    if has_codes and has_conditions:
        message = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield FieldError("FieldValueInvalid", rule.path(), f"Invalid value: {message}")
    elif not has_codes and not has_conditions:
        message = "specifying one of OnExitCodes and OnPodConditions is required"
        yield FieldError("FieldValueInvalid", rule.path(), f"Invalid value: {message}")


failure_policy: Final = inside(
    "podFailurePolicy",
    field("rules").max_items(_MAX_RULES),
    each(
        "rules",
        _require_word("action", "Count", "FailIndex", "FailJob", "Ignore"),
        field("action").invalid_if(
            lambda rule: rule.get("action") == "FailIndex" and rule.parent.parent.get("backoffLimitPerIndex") is None,
            "requires the backoffLimitPerIndex to be set",
        ),
        inside("onExitCodes", _require_word("operator", "In", "NotIn"), _check_exit_codes),
        field("onPodConditions").max_items(_MAX_RULES),
        each(
            "onPodConditions",
            field("type").check(qualified_name, zero=""),
            _require_word("status", "False", "True", "Unknown"),
        ),
        _check_codes_or_conditions,
    ),
)


def _check_success_rule(rule: Scope) -> Errors:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        yield rule.required("", "at least one of succeededCount or succeededIndexes must be specified")
        return
    completions = rule.parent.parent.number("completions")
    total, problem = count_indexes(indexes or "", completions)
    yield from _INDEXES_LENGTH(rule)
    if problem:
        yield rule.invalid("succeededIndexes", f"error parsing succeededIndexes: {problem}")
    if count is None:
        return
    yield from _COUNT(rule)
    if count > completions:
        message = f"must be less than or equal to {completions} (the number of specified completions)"
        yield rule.invalid("succeededCount", message)
    if indexes is not None and count > total:
        described = "the number of indexes in the specified succeededIndexes field"
        yield rule.invalid("succeededCount", f"must be less than or equal to {total} ({described})")


_INDEXES_LENGTH: Final = field("succeededIndexes").max_length(_MAX_INDEXES_LENGTH)
_COUNT: Final = field("succeededCount").at_least(0)
_SUCCESS_RULES: Final = (field("rules").max_items(_MAX_RULES), each("rules", _check_success_rule))


def check_success_policy(spec: Scope) -> Errors:
    """Check the successPolicy of a Job: which indexes, or how many of them, must succeed."""
    if spec.get("successPolicy") is None:
        return
    policy = spec.inside("successPolicy")
    if spec.get("completionMode") != "Indexed":
        keys = {"SucceededIndexes": "succeededIndexes", "SucceededCount": "succeededCount"}
        rules = [go_struct({name: rule.get(key) for name, key in keys.items()}) for rule in policy.items("rules")]
        message = f'Invalid value: {{"Rules":[{",".join(rules)}]}}: {NEEDS_INDEXED}'
        yield FieldError("FieldValueInvalid", policy.path(), message)
    elif not policy.get("rules"):
        yield policy.required("rules", "at least one rules must be specified when the successPolicy is specified")
    else:
        yield from apply(_SUCCESS_RULES, policy)


def count_indexes(intervals: str, completions: int) -> tuple[int, str]:
    """Return how many indexes intervals such as 0,2-4 contain, and an error message or ""."""
    total, last = 0, -1
    for range_text in intervals.split(",") if intervals else ():
        ends = range_text.split("-")
        if len(ends) > 2:
            message = "violates the requirement that an index interval can have at most two parts separated by '-'"
            return 0, f"the fragment {quote_go(range_text)} {message}"
        numbers: list[int] = []
        for end in ends:
            if not (end.isascii() and end.isdigit()):
                return 0, f"cannot convert string to integer for index: {quote_go(end)}"
            if int(end) >= completions:
                return 0, f"too large index: {quote_go(end)}"
            numbers.append(int(end))
        first, final = numbers[0], numbers[-1]
        if len(numbers) == 2 and first >= final:
            return 0, f"non-increasing order, previous: {first}, current: {final}"
        if last >= first:
            return 0, f"non-increasing order, previous: {last}, current: {first}"
        total, last = total + final - first + 1, final
    return total, ""
