"""RBAC policy rules: whether a rule allows a request, and whether rules cover other rules."""

from collections.abc import Iterable, Iterator

from fairlead.api.gojson import quote_go
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.authorization.authorizer import Rule


def allows(rule: Rule, attributes: Attributes) -> bool:
    """Return whether an RBAC rule allows the verb and the resource or path of a request."""
    if not _contains(rule, "verbs", attributes.verb):
        return False
    if attributes.path:
        return any(url == "*" or _matches_url(url, attributes.path) for url in rule.get("nonResourceURLs") or ())
    if not _contains(rule, "apiGroups", attributes.group):
        return False
    resources = rule.get("resources") or ()
    if not (
        "*" in resources
        or attributes.full_resource in resources
        or (attributes.subresource and f"*/{attributes.subresource}" in resources)
    ):
        return False
    names = rule.get("resourceNames")
    return not names or attributes.name in names


def find_missing_rules(held_rules: list[Rule], granted: Iterable[Rule]) -> list[Rule]:
    """Return the single rules in `granted` not covered by `held_rules`. A single rule is one verb on one resource."""
    single_rules = [single_rule for rule in granted for single_rule in _split_rule(rule)]
    return [
        single_rule for single_rule in single_rules if not any(_covers_rule(rule, single_rule) for rule in held_rules)
    ]


def describe(rules: Iterable[Rule]) -> str:
    """Return rules as the error message of a forbidden grant lists them: one line per resource, with all its verbs."""
    merged: dict[tuple[tuple[str, tuple[str, ...]], ...], Rule] = {}
    for index, rule in enumerate(rules):
        is_resource_rule = not rule.get("nonResourceURLs")
        key = tuple(
            (key_name, tuple(rule.get(key_name) or ())) for key_name in ("apiGroups", "resources", "resourceNames")
        )
        entry = merged.setdefault(key if is_resource_rule else (*key, (str(index), ())), {**rule, "verbs": []})
        entry["verbs"] += rule["verbs"]
    return "\n".join(sorted({_format_rule(rule) for rule in merged.values()}))


def _split_rule(rule: Rule) -> Iterator[Rule]:
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                single_rule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                yield from ({**single_rule, "resourceNames": [name]} for name in names) if names else (single_rule,)
    for url in rule.get("nonResourceURLs") or ():
        yield from ({"nonResourceURLs": [url], "verbs": [verb]} for verb in rule.get("verbs") or ())


def _covers_rule(rule: Rule, single_rule: Rule) -> bool:
    if not _contains(rule, "verbs", single_rule["verbs"][0]):
        return False
    if "nonResourceURLs" in single_rule:
        return any(_matches_url(url, single_rule["nonResourceURLs"][0]) for url in rule.get("nonResourceURLs") or ())
    if not _contains(rule, "apiGroups", single_rule["apiGroups"][0]):
        return False
    resource, resources = single_rule["resources"][0], rule.get("resources") or ()
    _, slash, subresource = resource.partition("/")
    if not ("*" in resources or resource in resources or (slash and f"*/{subresource}" in resources)):
        return False
    names = rule.get("resourceNames")
    return not names or ("resourceNames" in single_rule and single_rule["resourceNames"][0] in names)


def _contains(rule: Rule, key: str, value: str) -> bool:
    values = rule.get(key) or ()
    return "*" in values or value in values


def _matches_url(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


_WORDS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def _format_rule(rule: Rule) -> str:
    parts = [f"{label}:[{' '.join(quote_go(v) for v in rule[key])}]" for label, key in _WORDS if rule.get(key)]
    return "{" + ", ".join(parts) + "}"
