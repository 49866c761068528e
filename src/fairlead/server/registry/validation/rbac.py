"""Roles and bindings."""

from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import words
from fairlead.server.registry.validation.vocabulary import Object, one_of, selector, subdomain
from fairlead.server.write import names

_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def role(new: Object, old: Object | None) -> list[FieldError]:
    return _rules(new, namespaced=True)


def cluster_role(new: Object, old: Object | None) -> list[FieldError]:
    return _rules(new, namespaced=False) + _aggregated(new)


def _aggregated(new: Object) -> list[FieldError]:
    if new.get("aggregationRule") is None:
        return []
    field, selectors = "aggregationRule.clusterRoleSelectors", new["aggregationRule"].get("clusterRoleSelectors") or []
    if not selectors:
        return [field_errors.required(field, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    found: list[FieldError] = []
    for index, one in enumerate(selectors):
        if wrong := selector(f"{field}[{index}]", one):
            found += [*wrong, field_errors.invalid(f"{field}[{index}]", None, "invalid label selector.")]
    return found


def role_binding(new: Object, old: Object | None) -> list[FieldError]:
    return _binding(new, old, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(new: Object, old: Object | None) -> list[FieldError]:
    return _binding(new, old, ("ClusterRole",), namespaced=False)


def _rules(new: Object, *, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for index, rule in enumerate(new.get("rules") or ()):
        here = f"rules[{index}]"
        if not rule.get("verbs"):
            found.append(field_errors.required(f"{here}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            if namespaced:
                told = "namespaced rules cannot apply to non-resource URLs"
                found.append(field_errors.invalid(f"{here}.nonResourceURLs", urls, told))
            if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
                told = "rules cannot apply to both regular resources and non-resource URLs"
                found.append(field_errors.invalid(f"{here}.nonResourceURLs", urls, told))
            continue
        if not rule.get("apiGroups"):
            found.append(
                field_errors.required(f"{here}.apiGroups", "resource rules must supply at least one api group")
            )
        if not rule.get("resources"):
            found.append(field_errors.required(f"{here}.resources", "resource rules must supply at least one resource"))
    return found


def _binding(new: Object, old: Object | None, kinds: tuple[str, ...], *, namespaced: bool) -> list[FieldError]:
    ref = new.get("roleRef") or {}
    found = one_of("roleRef.apiGroup", ref.get("apiGroup"), ("rbac.authorization.k8s.io",))
    found += one_of("roleRef.kind", ref.get("kind"), kinds)
    if not ref.get("name"):
        found.append(field_errors.required("roleRef.name"))
    found += words("roleRef.name", names.path_segment)(new, None, "")
    for index, subject in enumerate(new.get("subjects") or ()):
        here = f"subjects[{index}]"
        if not subject.get("name"):
            found.append(field_errors.required(f"{here}.name"))
        elif subject.get("kind") == "ServiceAccount":
            found += subdomain(f"{here}.name", subject["name"])
        found += one_of(f"{here}.kind", subject.get("kind"), _SUBJECTS)
        wanted = "" if subject.get("kind") == "ServiceAccount" else "rbac.authorization.k8s.io"
        if subject.get("kind") in _SUBJECTS and (subject.get("apiGroup") or "") != wanted:
            found.append(field_errors.not_supported(f"{here}.apiGroup", subject.get("apiGroup") or "", (wanted,)))
        if subject.get("kind") == "ServiceAccount" and not namespaced and not subject.get("namespace"):
            found.append(field_errors.required(f"{here}.namespace"))
    if old is not None and ref != (old.get("roleRef") or {}):
        internal = {"APIGroup": ref.get("apiGroup", ""), "Kind": ref.get("kind", ""), "Name": ref.get("name", "")}
        found.append(field_errors.invalid("roleRef", internal, "cannot change roleRef"))
    return found
