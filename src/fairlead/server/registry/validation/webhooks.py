"""Validation of the configurations of admission webhooks."""

from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from fairlead.server.registry.validation.formats import dns_1035_label, dns_subdomain, qualified_name
from fairlead.server.registry.validation.rules import (
    EMPTY,
    Errors,
    Rule,
    Scope,
    build_validator,
    each,
    field,
    first_error,
    inside,
)
from fairlead.server.registry.validation.selectors import check_label_selector

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_MAX_CONDITIONS: Final = 64
_URL_FORM: Final = "; desired format: https://host[/path]"


def _check_webhook_name(name: str) -> Iterable[str]:
    if messages := list(dns_subdomain(name)):
        return messages
    return () if name.count(".") >= 2 else ("should be a domain with at least three segments separated by dots",)


def _check_review_versions(hook: Scope) -> Errors:
    key, versions = "admissionReviewVersions", hook.items("admissionReviewVersions")
    if not versions:
        yield hook.required(key, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield hook.invalid(f"{key}[{index}]", "duplicate version", version)
        else:
            yield from hook.check(f"{key}[{index}]", dns_1035_label, version)
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield hook.invalid(key, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")


def _check_values_or_star(key: str, plural: str) -> Rule:
    """Return a rule for a list that must not be empty, and in which "*" must be the only value."""

    def rule(scope: Scope) -> Errors:
        values = scope.items(key)
        if not values:
            yield scope.required(key)
        elif "*" in values and len(values) > 1:
            yield scope.invalid(key, f"if '*' is present, must not specify other {plural}")

    return rule


def _check_no_empty_versions(rule: Scope) -> Errors:
    return [
        rule.required(f"apiVersions[{index}]") for index, version in enumerate(rule.items("apiVersions")) if not version
    ]


def _check_resources(rule: Scope) -> Errors:
    """Check the resources of a webhook rule: an entry with a star must not include another entry."""
    items = rule.items("resources")
    if not items:
        yield rule.required("resources")
    with_all_subresources: set[str] = set()
    of_all_resources: set[str] = set()
    for index, item in enumerate(items):
        key, (name, _, subresource) = f"resources[{index}]", item.partition("/")
        if not item:
            yield rule.required(key)
        if not subresource:
            continue
        if name in with_all_subresources:
            yield rule.invalid(key, f"if '{name}/*' is present, must not specify {item}", item)
        if subresource in of_all_resources:
            yield rule.invalid(key, f"if '*/{subresource}' is present, must not specify {item}", item)
        with_all_subresources |= {name} if subresource == "*" else set()
        of_all_resources |= {subresource} if name == "*" else set()
    if len(items) > 1 and "*/*" in items:
        yield rule.invalid("resources", "if '*/*' is present, must not specify other resources")
    plain_resources = [item for item in items if item and "/" not in item]
    if "*" in items and plain_resources[-1] != "*":
        message = "if '*' is present, must not specify other resources without subresources"
        yield rule.invalid("resources", message)


def _check_url(client: Scope) -> Errors:
    try:
        url_parts = urlsplit(client.text("url"))
    except ValueError as error:
        yield client.required("url", f"url must be a valid URL: {error}{_URL_FORM}")
        return
    user, _, host = url_parts.netloc.rpartition("@")
    if url_parts.scheme != "https":
        yield client.invalid("url", f"'https' is the only allowed URL scheme{_URL_FORM}", url_parts.scheme)
    if not host:
        yield client.invalid("url", f"host must be specified{_URL_FORM}", "")
    if user:
        yield client.invalid("url", "user information is not permitted in the URL", user)
    if url_parts.fragment:
        yield client.invalid("url", "fragments are not permitted in the URL", url_parts.fragment)
    if url_parts.query:
        yield client.invalid("url", "query parameters are not permitted in the URL", url_parts.query)


def _check_url_path(path: str) -> Iterator[str]:
    if path in ("", "/"):
        return
    if path == "//":
        yield "segment[0] may not be empty"
        return
    if not path.startswith("/"):
        yield "must start with a '/'"
    for index, segment in enumerate(path[1:].removesuffix("/").split("/")):
        messages = [f": {message}" for message in dns_subdomain(segment)] if segment else [" may not be empty"]
        yield from (f"segment[{index}]{message}" for message in messages)


_SERVICE: Final = inside(
    "service",
    # A real server reports a missing name as the namespace, and the other way round.
    field("name").required_if({"namespace": EMPTY}),
    field("namespace").required_if({"name": EMPTY}),
    field("port").between(1, 65535, message="port is not valid: must be between 1 and 65535, inclusive"),
    field("path").check(_check_url_path),
)


def check_url_or_service(client: Scope) -> Errors:
    """Check that the clientConfig of a webhook has either a URL or a Service, and that it is valid."""
    has_url, has_service = client.get("url") is not None, client.get("service") is not None
    if has_url == has_service:
        return [client.required("", "exactly one of url or service is required")]
    return _check_url(client) if has_url else _SERVICE(client)


configuration: Final = build_validator(
    each(
        "webhooks",
        _check_review_versions,
        field("name").required(_check_webhook_name),
        each(
            "rules",
            _check_values_or_star("operations", "operations"),
            field("operations").enum_values(*_OPERATIONS),
            _check_values_or_star("apiGroups", "API groups"),
            _check_values_or_star("apiVersions", "API versions"),
            _check_no_empty_versions,
            _check_resources,
            field("scope").enum("*", "Cluster", "Namespaced"),
        ),
        field("failurePolicy").enum("Fail", "Ignore"),
        field("matchPolicy").enum("Equivalent", "Exact"),
        first_error(
            field("sideEffects").required(detail=f"must specify one of {', '.join(_SIDE_EFFECTS)}", allow_empty=True),
            field("sideEffects").enum(*_SIDE_EFFECTS),
        ),
        field("timeoutSeconds").between(1, 30, message="the timeout value must be between 1 and 30 seconds"),
        check_label_selector("namespaceSelector", "objectSelector"),
        inside("clientConfig", check_url_or_service, always=True),
        field("reinvocationPolicy").enum("IfNeeded", "Never"),
        field("matchConditions").max_items(_MAX_CONDITIONS),
        each(
            "matchConditions",  # this server does not compile their expressions
            field("expression").required_if(lambda condition: not condition.text("expression").strip()),
            field("name").required(qualified_name),
            field("name").unique(skip_empty=True),
        ),
    ),
    each("webhooks", field("name").unique()),
)
