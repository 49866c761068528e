"""Validation of labels and label selectors."""

from typing import Final

from fairlead.server.registry.validation.formats import label_value, qualified_name
from fairlead.server.registry.validation.rules import Errors, Object, Rule, Scope, apply, each, inside, lookup

WITH_VALUES, WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")
INVALID_OPERATOR: Final = "not a valid selector operator"


def check_labels(key: str) -> Rule:
    """Return a rule for the keys and values of the map of labels at a key."""

    def rule(scope: Scope) -> Errors:
        for name, value in scope.map(key).items():
            yield from scope.check(key, qualified_name, name)
            yield from scope.check(key, label_value, value)

    return rule


def check_values_match_operator(requirement: Scope) -> Errors:
    """Require values for In and NotIn, and reject them for Exists and DoesNotExist."""
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in WITH_VALUES and not values:
        yield requirement.required("values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in WITHOUT_VALUES and values:
        yield requirement.forbidden("values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")


def _check_requirement(requirement: Scope) -> Errors:
    if requirement.get("operator") in (*WITH_VALUES, *WITHOUT_VALUES):
        yield from check_values_match_operator(requirement)
    else:
        yield requirement.invalid("operator", INVALID_OPERATOR, requirement.text("operator"))
    yield from requirement.check("key", qualified_name, requirement.text("key"))
    yield from requirement.check_values("values", label_value)


_SELECTOR: Final = (check_labels("matchLabels"), each("matchExpressions", _check_requirement))


def check_label_selector(*keys: str) -> Rule:
    """Return a rule for the label selectors at these keys."""
    rules = [inside(key, *_SELECTOR) for key in keys]
    return lambda scope: apply(rules, scope)


def get_template_labels(spec: Scope) -> Object | None:
    """Return the labels of the Pod template in a spec, or None if it has none."""
    labels: Object | None = lookup(spec.value, "template.metadata.labels")
    return labels


def is_empty_selector(selector: Object | None) -> bool:
    return not (selector or {}).get("matchLabels") and not (selector or {}).get("matchExpressions")


def selects(selector: Object | None, labels: Object) -> bool:
    """Return whether a label selector matches these labels. An empty selector matches nothing."""
    if selector is None or is_empty_selector(selector):
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets_requirement(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def _meets_requirement(requirement: Object, labels: Object) -> bool:
    key, values = requirement.get("key"), requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
