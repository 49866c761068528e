"""Validation of the fields that say where a Pod may run: affinity, tolerations, topology spread constraints."""

from typing import Final

from fairlead.server.registry.validation.formats import dns_label, dns_subdomain, label_value, qualified_name
from fairlead.server.registry.validation.rules import Errors, Object, Rule, Scope, each, field, first_error, inside
from fairlead.server.registry.validation.selectors import (
    INVALID_OPERATOR,
    WITH_VALUES,
    WITHOUT_VALUES,
    check_label_selector,
    check_values_match_operator,
)

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_KEY: Final = field("key").optional(qualified_name)


def check_toleration(toleration: Scope) -> Errors:
    yield from _KEY(toleration)
    operator, effect, value = toleration.get("operator") or "Equal", toleration.text("effect"), toleration.text("value")
    if not toleration.get("key") and operator != "Exists":
        message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield toleration.invalid("operator", message, toleration.text("operator"))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield toleration.invalid("effect", "effect must be 'NoExecute' when `tolerationSeconds` is set", effect)
    if operator == "Exists" and value:
        yield toleration.invalid("operator", "value must be empty when `operator` is 'Exists'", value)
    elif operator == "Equal" and (messages := list(label_value(value))):
        yield toleration.invalid("operator", ";".join(messages), value)
    if operator not in ("Equal", "Exists"):
        allowed = ("Equal", "Exists", *(("Lt", "Gt") if operator in ("Lt", "Gt") else ()))
        yield toleration.not_supported("operator", allowed)
    if effect and effect not in TAINT_EFFECTS:
        yield toleration.not_supported("effect", TAINT_EFFECTS)


def _check_label_requirement(*, is_strict: bool) -> Rule:
    """Return a rule for a requirement on node labels. `is_strict`: reject values that no label can have."""

    def rule(requirement: Scope) -> Errors:
        operator = requirement.get("operator")
        if operator in ("Gt", "Lt"):
            if len(requirement.items("values")) != 1:
                yield requirement.required("values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        elif operator in (*WITH_VALUES, *WITHOUT_VALUES):
            yield from check_values_match_operator(requirement)
        else:
            yield requirement.invalid("operator", INVALID_OPERATOR, operator or "")
        yield from requirement.check("key", qualified_name, requirement.text("key"))
        if is_strict:
            yield from requirement.check_values("values", label_value)

    return rule


def _check_field_requirement(requirement: Scope) -> Errors:
    """Check a requirement on node fields: only metadata.name can be selected."""
    operator = requirement.get("operator")
    if operator not in WITH_VALUES:
        yield requirement.invalid("operator", INVALID_OPERATOR, operator or "")
    elif len(requirement.items("values")) != 1:
        message = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield requirement.required("values", message)
    if requirement.get("key") != "metadata.name":
        yield requirement.invalid("key", "not a valid field selector key", requirement.text("key"))
    else:
        yield from requirement.check_values("values", dns_subdomain)


def _check_node_selector_term(*, is_strict: bool) -> tuple[Rule, ...]:
    return each("matchExpressions", _check_label_requirement(is_strict=is_strict)), each(
        "matchFields", _check_field_requirement
    )


node_selector: Final = first_error(
    field("nodeSelectorTerms").required(detail="must have at least one node selector term"),
    each("nodeSelectorTerms", *_check_node_selector_term(is_strict=True)),
)


def _check_label_keys(term: Scope) -> Errors:
    """Check matchLabelKeys and mismatchLabelKeys of a Pod affinity term."""
    matching, selector = term.items("matchLabelKeys"), term.get("labelSelector")
    for key in ("matchLabelKeys", "mismatchLabelKeys"):
        if term.get(key) and selector is None:
            yield term.forbidden(key, "must not be specified when labelSelector is not set")
        else:
            yield from term.check_values(key, qualified_name)
    selected = set((selector or {}).get("matchLabels") or ())
    for requirement in (selector or {}).get("matchExpressions") or ():
        key = requirement.get("key") or ""
        if key in matching and key in selected:
            last = len(matching) - 1 - matching[::-1].index(key)
            yield term.invalid(f"[{last}]", "exists in both matchLabelKeys and labelSelector", key)
        selected.add(key)
    for index, key in enumerate(matching):
        if key in term.items("mismatchLabelKeys"):
            yield term.invalid(f"matchLabelKeys[{index}]", "exists in both matchLabelKeys and mismatchLabelKeys", key)


def _check_namespaces(term: Scope) -> Errors:
    return [error for name in term.items("namespaces") for error in term.check("namespace", dns_label, name)]


def _check_topology_key(term: Scope) -> Errors:
    if not term.get("topologyKey"):
        yield term.required("topologyKey", "can not be empty")
    yield from term.check("topologyKey", qualified_name, term.text("topologyKey"))


_LATER: Final = "DuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = field("weight").between(1, 100, message="must be in the range 1-100", zero=0)
_POD_TERM: Final = (
    check_label_selector("labelSelector", "namespaceSelector"),
    _check_namespaces,
    _check_label_keys,
    _check_topology_key,
)
_POD_TERMS: Final = (
    each(f"required{_LATER}", *_POD_TERM),
    each(f"preferred{_LATER}", _WEIGHT, inside("podAffinityTerm", *_POD_TERM, always=True)),
)
affinity: Final = inside(
    "affinity",
    inside(
        "nodeAffinity",
        inside(f"required{_LATER}", node_selector),
        each(f"preferred{_LATER}", _WEIGHT, inside("preference", *_check_node_selector_term(is_strict=False))),
    ),
    inside("podAffinity", *_POD_TERMS),
    inside("podAntiAffinity", *_POD_TERMS),
)


def _get_key_and_action(constraint: Object) -> tuple[str, str]:
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def _check_unique_pair(constraint: Scope) -> Errors:
    """Reject a topology spread constraint if a later one has the same topologyKey and whenUnsatisfiable."""
    pair, seen_pairs = _get_key_and_action(constraint.value), constraint.notes.setdefault("pairs", [])
    seen_pairs.append(pair)
    if [_get_key_and_action(item) for item in constraint.parent.items("topologySpreadConstraints")].count(
        pair
    ) > seen_pairs.count(pair):
        yield constraint.duplicate("{topologyKey, whenUnsatisfiable}", f"{{{', '.join(pair)}}}")


def _check_min_domains(constraint: Scope) -> Errors:
    domains, action = constraint.get("minDomains"), constraint.text("whenUnsatisfiable")
    if domains is not None and domains <= 0:
        yield constraint.invalid("minDomains", "must be greater than zero")
    if domains is not None and action != "DoNotSchedule":
        message = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield constraint.invalid("minDomains", message)


topology_spread_constraints: Final = each(
    "topologySpreadConstraints",
    field("maxSkew").at_least(1, message="must be greater than zero", zero=0),
    field("topologyKey").required(detail="can not be empty"),
    field("whenUnsatisfiable").enum(*_UNSATISFIABLE, always=True),
    _check_unique_pair,
    _check_min_domains,
    field("nodeAffinityPolicy").enum("Honor", "Ignore"),
    field("nodeTaintsPolicy").enum("Honor", "Ignore"),
    _check_label_keys,
    check_label_selector("labelSelector"),
)
