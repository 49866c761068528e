"""When a Job has failed or succeeded before all its Pods have."""

from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import at_least
from fairlead.server.registry.validation.vocabulary import Object, go_shape, qualified

INDEXED: Final = "requires indexed completion mode"
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_STATUSES: Final = ("False", "True", "Unknown")
_RULES, _CODES, _PATTERNS, _LONGEST = 20, 255, 20, 64 * 1024


def _listed(values: tuple[str, ...]) -> str:
    """Words as Go's %q shows a list of them."""
    return f"valid values: [{' '.join(field_errors.quote_go(one) for one in values)}]"


def _one_of(field: str, given: str, allowed: tuple[str, ...]) -> list[FieldError]:
    if not given:
        return [field_errors.required(field, _listed(allowed))]
    return [] if given in allowed else [field_errors.not_supported(field, given, allowed)]


def failing(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """What makes a Job fail, or is not counted against it."""
    policy, path = spec.get("podFailurePolicy"), f"{path}.podFailurePolicy.rules"
    if policy is None:
        return []
    rules = policy.get("rules") or []
    found = [field_errors.too_many(path, len(rules), _RULES)] if len(rules) > _RULES else []
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {one.get("name") for key in ("containers", "initContainers") for one in pod.get(key) or ()}
    for index, one in enumerate(rules):
        here, action = f"{path}[{index}]", one.get("action") or ""
        found += _one_of(f"{here}.action", action, _ACTIONS)
        if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            told = "requires the backoffLimitPerIndex to be set"
            found.append(field_errors.invalid(f"{here}.action", action, told))
        codes, conditions = one.get("onExitCodes"), one.get("onPodConditions") or []
        found += _ended(codes, f"{here}.onExitCodes", names) if codes is not None else []
        found += _conditions(conditions, f"{here}.onPodConditions")
        if (codes is None) == (not conditions):
            which = "specifying one of OnExitCodes and OnPodConditions is required"
            both = "specifying both OnExitCodes and OnPodConditions is not supported"
            found.append(FieldError("FieldValueInvalid", here, f"Invalid value: {which if codes is None else both}"))
    return found


def _ended(given: Object, path: str, names: set[str | None]) -> list[FieldError]:
    """How containers ended: codes in order, each once."""
    operator, container, codes = given.get("operator") or "", given.get("containerName"), given.get("values") or []
    found = _one_of(f"{path}.operator", operator, _OPERATORS)
    if container is not None and container not in names:
        told = "must be one of the container or initContainer names in the pod template"
        found.append(field_errors.invalid(f"{path}.containerName", container, told))
    if not codes:
        found.append(field_errors.invalid(f"{path}.values", given.get("values"), "at least one value is required"))
    elif len(codes) > _CODES:
        found.append(field_errors.too_many(f"{path}.values", len(codes), _CODES))
    for index, code in enumerate(codes):
        if operator == "In" and code == 0:
            found.append(field_errors.invalid(f"{path}.values[{index}]", code, "must not be 0 for the In operator"))
        if code in codes[:index]:
            found.append(field_errors.duplicate(f"{path}.values[{index}]", code))
    return (
        found if codes == sorted(codes) else [*found, field_errors.invalid(f"{path}.values", codes, "must be ordered")]
    )


def _conditions(given: list[Object], path: str) -> list[FieldError]:
    found = [field_errors.too_many(path, len(given), _PATTERNS)] if len(given) > _PATTERNS else []
    for index, one in enumerate(given):
        found += qualified(f"{path}[{index}].type", one.get("type") or "")
        found += _one_of(f"{path}[{index}].status", one.get("status") or "", _STATUSES)
    return found


def succeeding(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """Which indexes, or how many of them, are enough."""
    policy, path = spec.get("successPolicy"), f"{path}.successPolicy"
    if policy is None:
        return []
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        keys = {"SucceededIndexes": "succeededIndexes", "SucceededCount": "succeededCount"}
        shown = ",".join(go_shape({name: one.get(key) for name, key in keys.items()}) for one in rules)
        return [FieldError("FieldValueInvalid", path, f'Invalid value: {{"Rules":[{shown}]}}: {INDEXED}')]
    path = f"{path}.rules"
    if not rules:
        told = "at least one rules must be specified when the successPolicy is specified"
        return [field_errors.required(path, told)]
    found = [field_errors.too_many(path, len(rules), _RULES)] if len(rules) > _RULES else []
    completions = spec.get("completions") or 0
    return found + [c for index, one in enumerate(rules) for c in _enough(one, f"{path}[{index}]", completions)]


def _enough(rule: Object, path: str, completions: int) -> list[FieldError]:
    indexes, wanted, field = rule.get("succeededIndexes"), rule.get("succeededCount"), f"{path}.succeededCount"
    if indexes is None and wanted is None:
        return [field_errors.required(path, "at least one of succeededCount or succeededIndexes must be specified")]
    found: list[FieldError] = []
    total, wrong = counted(indexes or "", completions)
    if indexes is not None and len(indexes) > _LONGEST:
        found.append(field_errors.too_long(f"{path}.succeededIndexes", _LONGEST))
    if wrong:
        told = f"error parsing succeededIndexes: {wrong}"
        found.append(field_errors.invalid(f"{path}.succeededIndexes", indexes, told))
    if wanted is None:
        return found
    found += at_least(0, "succeededCount")(rule, None, path)
    if wanted > completions:
        told = f"must be less than or equal to {completions} (the number of specified completions)"
        found.append(field_errors.invalid(field, wanted, told))
    if indexes is not None and wanted > total:
        told = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        found.append(field_errors.invalid(field, wanted, told))
    return found


def counted(text: str, completions: int) -> tuple[int, str]:
    """How many indexes intervals such as 0,2-4 hold, and what is wrong with them."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            told = "violates the requirement that an index interval can have at most two parts separated by '-'"
            return 0, f"the fragment {field_errors.quote_go(part)} {told}"
        numbers: list[int] = []
        for end in ends:
            if not (end.isascii() and end.isdigit()):
                return 0, f"cannot convert string to integer for index: {field_errors.quote_go(end)}"
            if int(end) >= completions:
                return 0, f"too large index: {field_errors.quote_go(end)}"
            numbers.append(int(end))
        first, final = numbers[0], numbers[-1]
        if len(numbers) == 2 and first >= final:
            return 0, f"non-increasing order, previous: {first}, current: {final}"
        if last >= first:
            return 0, f"non-increasing order, previous: {last}, current: {first}"
        total, last = total + final - first + 1, final
    return total, ""
