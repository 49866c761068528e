"""Validation of Roles and RoleBindings, and of their cluster-wide forms."""

from typing import Final

from fairlead.server.registry.validation.formats import dns_subdomain, path_segment
from fairlead.server.registry.validation.rules import (
    Errors,
    Rule,
    Scope,
    Validator,
    build_validator,
    each,
    field,
    inside,
)
from fairlead.server.registry.validation.selectors import check_label_selector

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")
_RESOURCE_RULE: Final = (
    field("apiGroups").required(detail="resource rules must supply at least one api group"),
    field("resources").required(detail="resource rules must supply at least one resource"),
)


def _check_policy_rules(*, is_namespaced: bool) -> Rule:
    def urls_or_resources(rule: Scope) -> Errors:
        if not rule.get("nonResourceURLs"):
            yield from (error for row in _RESOURCE_RULE for error in row(rule))
            return
        if is_namespaced:
            yield rule.invalid("nonResourceURLs", "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
            message = "rules cannot apply to both regular resources and non-resource URLs"
            yield rule.invalid("nonResourceURLs", message)

    return each("rules", field("verbs").required(detail="verbs must contain at least one value"), urls_or_resources)


def _check_aggregated_selectors(aggregation: Scope) -> Errors:
    key, selectors = "clusterRoleSelectors", aggregation.items("clusterRoleSelectors")
    if not selectors:
        yield aggregation.required(key, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        name = f"{key}[{index}]"
        errors = list(check_label_selector(name)(Scope({name: selector}, None, aggregation)))
        yield from errors
        if errors:
            yield aggregation.invalid(name, "invalid label selector.", None)


role: Final = build_validator(_check_policy_rules(is_namespaced=True))
cluster_role: Final = build_validator(
    _check_policy_rules(is_namespaced=False), inside("aggregationRule", _check_aggregated_selectors)
)


def _check_subject_group(subject: Scope) -> Errors:
    group = "" if subject.get("kind") == "ServiceAccount" else _GROUP
    if subject.get("kind") in _SUBJECTS and subject.text("apiGroup") != group:
        yield subject.not_supported("apiGroup", (group,))


def _check_account_name(subject: Scope) -> Errors:
    is_account = subject.get("kind") == "ServiceAccount" and subject.get("name")
    return subject.check("name", dns_subdomain) if is_account else ()


def _check_immutable_role(binding: Scope) -> Errors:
    ref = binding.map("roleRef")
    if binding.old is not None and ref != (binding.old_value("roleRef") or {}):
        role_ref_value = {"APIGroup": ref.get("apiGroup", ""), "Kind": ref.get("kind", ""), "Name": ref.get("name", "")}
        yield binding.invalid("roleRef", "cannot change roleRef", role_ref_value)


def _build_binding_validator(*role_kinds: str, is_namespaced: bool) -> Validator:
    return build_validator(
        inside(
            "roleRef",
            field("apiGroup").enum(_GROUP, always=True),
            field("kind").enum(*role_kinds, always=True),
            field("name").required(path_segment),
            always=True,
        ),
        each(
            "subjects",
            field("name").required(),
            _check_account_name,
            field("kind").enum(*_SUBJECTS, always=True),
            _check_subject_group,
            field("namespace").required_if(
                lambda subject: (
                    not is_namespaced and subject.get("kind") == "ServiceAccount" and not subject.get("namespace")
                )
            ),
        ),
        _check_immutable_role,
    )


role_binding: Final = _build_binding_validator("Role", "ClusterRole", is_namespaced=True)
cluster_role_binding: Final = _build_binding_validator("ClusterRole", is_namespaced=False)
