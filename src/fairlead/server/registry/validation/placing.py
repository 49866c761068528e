"""Where a Pod may run: affinities, tolerations, and how Pods are spread."""

from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import Rule, choice, each, inside
from fairlead.server.registry.validation.vocabulary import (
    LISTED,
    UNLISTED,
    Object,
    label_values,
    one_of,
    operands,
    qualified,
    selector,
)
from fairlead.server.write import names

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATOR: Final = "not a valid selector operator"
_SPREADS: Final = ("DoNotSchedule", "ScheduleAnyway")


def toleration(given: Object, old: Object | None, path: str) -> list[FieldError]:
    found = qualified(f"{path}.key", given["key"]) if given.get("key") else []
    operator, effect, text = given.get("operator") or "Equal", given.get("effect"), given.get("value") or ""
    if not given.get("key") and operator != "Exists":
        told = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(field_errors.invalid(f"{path}.operator", given.get("operator") or "", told))
    if given.get("tolerationSeconds") is not None and effect != "NoExecute":
        told = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(field_errors.invalid(f"{path}.effect", effect or "", told))
    if operator == "Exists" and text:
        told = "value must be empty when `operator` is 'Exists'"
        found.append(field_errors.invalid(f"{path}.operator", text, told))
    elif operator == "Equal" and (wrong := names.label_value(text)):
        found.append(field_errors.invalid(f"{path}.operator", text, ";".join(wrong)))
    allowed = ("Equal", "Exists", *(("Lt", "Gt") if operator in ("Lt", "Gt") else ()))
    if operator not in allowed[:2]:
        found.append(field_errors.not_supported(f"{path}.operator", operator, allowed))
    return found + (one_of(f"{path}.effect", effect, _EFFECTS) if effect else [])


def _labelled(*, strict: bool) -> Rule:
    """A requirement on a node's labels; `strict`: values that no label can have are wrong."""

    def rule(given: Object, old: Object | None, path: str) -> list[FieldError]:
        operator, values = given.get("operator"), given.get("values") or []
        found: list[FieldError] = []
        if operator in (*LISTED, *UNLISTED):
            found += operands(f"{path}.values", operator, values)
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                told = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                found.append(field_errors.required(f"{path}.values", told))
        else:
            found.append(field_errors.invalid(f"{path}.operator", operator or "", _OPERATOR))
        found += qualified(f"{path}.key", given.get("key") or "")
        return found + (label_values(f"{path}.values", values) if strict else [])

    return rule


def _named(given: Object, old: Object | None, path: str) -> list[FieldError]:
    """A requirement on a node's fields, of which there is one: its name."""
    operator, values, key = given.get("operator"), given.get("values") or [], given.get("key") or ""
    found: list[FieldError] = []
    if operator not in LISTED:
        found.append(field_errors.invalid(f"{path}.operator", operator or "", _OPERATOR))
    elif len(values) != 1:
        told = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(field_errors.required(f"{path}.values", told))
    if key != "metadata.name":
        return [*found, field_errors.invalid(f"{path}.key", key, "not a valid field selector key")]
    wrong = [(at, text, told) for at, text in enumerate(values) for told in names.subdomain(text)]
    return found + [field_errors.invalid(f"{path}.values[{at}]", text, told) for at, text, told in wrong]


def _term(*, strict: bool) -> tuple[Rule, ...]:
    return each("matchExpressions", _labelled(strict=strict)), each("matchFields", _named)


def node_selector(given: Object, old: Object | None, path: str) -> list[FieldError]:
    """Terms that select nodes, of which one has to fit."""
    if not given.get("nodeSelectorTerms"):
        return [field_errors.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return each("nodeSelectorTerms", *_term(strict=True))(given, None, path)


def _weight(given: Object, old: Object | None, path: str) -> list[FieldError]:
    weight = given.get("weight") or 0
    told = "must be in the range 1-100"
    return [] if 1 <= weight <= 100 else [field_errors.invalid(f"{path}.weight", weight, told)]


def _beside(given: Object, old: Object | None, path: str) -> list[FieldError]:
    """Pods to run beside, or not beside, by where."""
    found = [c for key in ("labelSelector", "namespaceSelector") for c in selector(f"{path}.{key}", given.get(key))]
    for name in given.get("namespaces") or ():
        found += [field_errors.invalid(f"{path}.namespace", name, told) for told in names.label(name)]
    found += _keys(given, path)
    key, field = given.get("topologyKey") or "", f"{path}.topologyKey"
    return found + ([] if key else [field_errors.required(field, "can not be empty")]) + qualified(field, key)


def _keys(given: Object, path: str) -> list[FieldError]:
    """Keys of labels that have to be, or not to be, those of the Pod itself."""
    found: list[FieldError] = []
    same, other = given.get("matchLabelKeys") or [], given.get("mismatchLabelKeys") or []
    chosen = given.get("labelSelector")
    for field, keys in ((f"{path}.matchLabelKeys", same), (f"{path}.mismatchLabelKeys", other)):
        if keys and chosen is None:
            found.append(field_errors.forbidden(field, "must not be specified when labelSelector is not set"))
        elif keys:
            found += [cause for at, key in enumerate(keys) for cause in qualified(f"{field}[{at}]", key)]
    seen = set((chosen or {}).get("matchLabels") or ())
    for expression in (chosen or {}).get("matchExpressions") or ():
        key = expression.get("key") or ""
        if key in same and key in seen:
            told = "exists in both matchLabelKeys and labelSelector"
            found.append(field_errors.invalid(f"{path}[{len(same) - 1 - same[::-1].index(key)}]", key, told))
        seen.add(key)
    told = "exists in both matchLabelKeys and mismatchLabelKeys"
    both = [(at, key) for at, key in enumerate(same) if key in other]
    return found + [field_errors.invalid(f"{path}.matchLabelKeys[{at}]", key, told) for at, key in both]


_LATER: Final = "DuringSchedulingIgnoredDuringExecution"
_PODS: Final = (
    each(f"required{_LATER}", _beside),
    each(f"preferred{_LATER}", _weight, inside("podAffinityTerm", _beside, always=True)),
)
affinity: Final = inside(
    "affinity",
    inside(
        "nodeAffinity",
        inside(f"required{_LATER}", node_selector),
        each(f"preferred{_LATER}", _weight, inside("preference", *_term(strict=False))),
    ),
    inside("podAffinity", *_PODS),
    inside("podAntiAffinity", *_PODS),
)


def spreads(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    """How Pods are spread; each way once for each place."""
    found: list[FieldError] = []
    given = spec.get("topologySpreadConstraints") or []
    for index, one in enumerate(given):
        here = f"{path}.topologySpreadConstraints[{index}]"
        skew, key, way = one.get("maxSkew") or 0, one.get("topologyKey") or "", one.get("whenUnsatisfiable") or ""
        if skew <= 0:
            found.append(field_errors.invalid(f"{here}.maxSkew", skew, "must be greater than zero"))
        if not key:
            found.append(field_errors.required(f"{here}.topologyKey", "can not be empty"))
        found += one_of(f"{here}.whenUnsatisfiable", way, _SPREADS)
        later = [(other.get("topologyKey") or "", other.get("whenUnsatisfiable") or "") for other in given[index + 1 :]]
        if (key, way) in later:
            field = f"{here}.{{topologyKey, whenUnsatisfiable}}"
            found.append(field_errors.duplicate(field, f"{{{key}, {way}}}"))
        found += _domains(one, way, here)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            found += choice(policy, ("Honor", "Ignore"))(one, None, here)
        found += _keys(one, here) + selector(f"{here}.labelSelector", one.get("labelSelector"))
    return found


def _domains(one: Object, way: str, path: str) -> list[FieldError]:
    least, field = one.get("minDomains"), f"{path}.minDomains"
    if least is None:
        return []
    found = [] if least > 0 else [field_errors.invalid(field, least, "must be greater than zero")]
    if way != _SPREADS[0]:
        told = f"can only use minDomains if whenUnsatisfiable={_SPREADS[0]}, not {way}"
        found.append(field_errors.invalid(field, least, told))
    return found
