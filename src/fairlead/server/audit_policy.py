"""Audit policies: which requests are logged, at which level and stages, as in `kube-apiserver --audit-policy-file`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api import documents
from fairlead.server.authorization.attributes import Attributes

LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")
STAGES: Final = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
_RULE_FIELDS: Final = (
    "level",
    "users",
    "userGroups",
    "verbs",
    "resources",
    "namespaces",
    "nonResourceURLs",
    "omitStages",
    "omitManagedFields",
)
_POLICY_FIELDS: Final = ("apiVersion", "kind", "metadata", "omitStages", "omitManagedFields", "rules")
_RESOURCE_FIELDS: Final = ("group", "resources", "resourceNames")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How to log one request."""

    level: str
    omitted_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False

    @property
    def logs_request(self) -> bool:
        """Whether the event has the body of the request."""
        return self.level in ("Request", "RequestResponse")

    @property
    def logs_response(self) -> bool:
        """Whether the event has the body of the response."""
        return self.level == "RequestResponse"


@dataclass(frozen=True, slots=True)
class Resources:
    """The kinds of one group that a rule applies to. No `resources`: all kinds of the group."""

    group: str = ""
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def matches(self, attributes: Attributes) -> bool:
        if self.group != attributes.group:
            return False
        if not self.resources:
            return True
        if self.names and attributes.name not in self.names:
            return False
        return any(_matches_resource(pattern, attributes) for pattern in self.resources)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a policy. An empty field matches every request."""

    verdict: Verdict
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[Resources, ...] = ()
    namespaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def matches(self, attributes: Attributes, *, is_authenticated: bool) -> bool:
        user = attributes.user
        if self.users and not (is_authenticated and user.name in self.users):
            return False
        if self.groups and not (is_authenticated and any(group in self.groups for group in user.groups)):
            return False
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._matches_resource(attributes)
        return not self.paths or any(_matches_path(pattern, attributes.path) for pattern in self.paths)

    def _matches_resource(self, attributes: Attributes) -> bool:
        if attributes.path:
            return False
        if self.namespaces and attributes.namespace not in self.namespaces:
            return False
        return not self.resources or any(resources.matches(attributes) for resources in self.resources)


class AuditPolicy:
    """The rules of a policy file. The first rule that matches a request decides; without one, it is not logged."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)

    def decide(self, attributes: Attributes, *, is_authenticated: bool) -> Verdict:
        """Return how to log a request. `attributes.user` is the user who sent it, not an impersonated one."""
        for rule in self._rules:
            if rule.matches(attributes, is_authenticated=is_authenticated):
                return rule.verdict
        return NOT_LOGGED


NOT_LOGGED: Final = Verdict("None")
METADATA_POLICY: Final = AuditPolicy([Rule(Verdict("Metadata", frozenset({"RequestReceived"})))])
"""The policy without a policy file: each request at the level Metadata, without the stage RequestReceived."""


def parse_policy(text: str) -> AuditPolicy:
    """Return the policy of a YAML or JSON text. Raises ValueError that names the wrong field."""
    policy = documents.parse_one(text)
    if not isinstance(policy, dict) or policy.get("kind") != "Policy":
        raise ValueError("an audit policy is an object with apiVersion: audit.k8s.io/v1 and kind: Policy")
    if policy.get("apiVersion") != "audit.k8s.io/v1":
        raise ValueError(f"apiVersion: {policy.get('apiVersion')!r} is not audit.k8s.io/v1")
    _expect_fields("an audit policy", policy, _POLICY_FIELDS)
    rules = policy.get("rules")
    if not isinstance(rules, list) or not rules:
        raise ValueError("an audit policy needs rules, for example rules: [{level: Metadata}]")
    return AuditPolicy(_parse_rule(f"rules[{index}]", rule, policy) for index, rule in enumerate(rules))


def _parse_rule(where: str, rule: Any, policy: dict[str, Any]) -> Rule:
    if not isinstance(rule, dict):
        raise ValueError(f"{where} is not an object like {{level: Metadata}}")
    _expect_fields(where, rule, _RULE_FIELDS)
    if rule.get("level") not in LEVELS:
        raise ValueError(f"{where}.level: {rule.get('level')!r} is not one of {', '.join(LEVELS)}")
    stages = {*_parse_stages("omitStages", policy), *_parse_stages(f"{where}.omitStages", rule)}
    omit = rule.get("omitManagedFields")
    omit_managed_fields = policy.get("omitManagedFields") is True if omit is None else omit is True
    paths = _parse_texts(where, rule, "nonResourceURLs")
    if paths and (rule.get("resources") or rule.get("namespaces")):
        raise ValueError(f"{where}: a rule applies to resources or to nonResourceURLs, not to both")
    return Rule(
        Verdict(rule["level"], frozenset(stages), omit_managed_fields),
        users=_parse_texts(where, rule, "users"),
        groups=_parse_texts(where, rule, "userGroups"),
        verbs=_parse_texts(where, rule, "verbs"),
        resources=tuple(_parse_resources(where, item) for item in rule.get("resources") or []),
        namespaces=_parse_texts(where, rule, "namespaces"),
        paths=paths,
    )


def _parse_resources(where: str, item: Any) -> Resources:
    if not isinstance(item, dict):
        raise ValueError(f"{where}.resources has {item!r} instead of an object like {{group: apps}}")
    _expect_fields(f"{where}.resources", item, _RESOURCE_FIELDS)
    resources, names = _parse_texts(where, item, "resources"), _parse_texts(where, item, "resourceNames")
    if names and not resources:
        raise ValueError(f"{where}: resourceNames need resources")
    return Resources(item.get("group") or "", resources, names)


def _parse_stages(where: str, item: dict[str, Any]) -> tuple[str, ...]:
    stages = _parse_texts(where, item, "omitStages")
    for stage in stages:
        if stage not in STAGES:
            raise ValueError(f"{where}: {stage!r} is not one of {', '.join(STAGES)}")
    return stages


def _parse_texts(where: str, item: dict[str, Any], name: str) -> tuple[str, ...]:
    values = item.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{where}: {name} is not a list of texts")
    return tuple(values)


def _expect_fields(where: str, item: dict[str, Any], known: tuple[str, ...]) -> None:
    if unknown := sorted(set(item) - set(known)):
        raise ValueError(f"{where} has {', '.join(known)}, not {', '.join(unknown)}")


def _matches_resource(pattern: str, attributes: Attributes) -> bool:
    """Return whether a pattern such as pods, pods/log, pods/*, */scale or * matches. pods/* also matches pods."""
    resource, _, subresource = pattern.partition("/")
    if pattern in ("*", attributes.full_resource):
        return True
    if resource == "*":
        return bool(attributes.subresource) and subresource == attributes.subresource
    return subresource == "*" and resource == attributes.resource


def _matches_path(pattern: str, path: str) -> bool:
    return bool(path) and (path.startswith(pattern.rstrip("*")) if pattern.endswith("*") else path == pattern)
