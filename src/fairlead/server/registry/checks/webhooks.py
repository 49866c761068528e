"""Configurations of admission webhooks."""

from typing import Final

from fairlead.server import causes
from fairlead.server.causes import Cause
from fairlead.server.registry.checks.rules import Rule, checks, choice, each, inside, needed, value
from fairlead.server.registry.checks.vocabulary import Object, selector, subdomain

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_REVIEWS: Final = ("v1", "v1beta1")
_EFFECTS: Final = ("None", "NoneOnDryRun")
_LONGEST: Final = 30


def _named(hook: Object, old: Object | None, path: str) -> list[Cause]:
    name, field = hook.get("name") or "", f"{path}.name"
    if not name:
        return [causes.required(field)]
    if wrong := subdomain(field, name):
        return wrong
    told = "should be a domain with at least three segments separated by dots"
    return [] if name.count(".") >= 2 else [causes.invalid(field, name, told)]


def _once(new: Object, old: Object | None, path: str) -> list[Cause]:
    given = [hook.get("name") or "" for hook in new.get("webhooks") or ()]
    repeated = [(i, name) for i, name in enumerate(given) if name in given[:i]]
    return [causes.duplicate(f"webhooks[{i}].name", name) for i, name in repeated]


def _reviews(hook: Object, old: Object | None, path: str) -> list[Cause]:
    given, field = hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions"
    if not given:
        return [causes.required(field, f"must specify one of {', '.join(_REVIEWS)}")]
    known = any(version in _REVIEWS for version in given)
    told = f"must include at least one of {', '.join(_REVIEWS)}"
    return [] if known else [causes.invalid(field, given, told)]


def _alone(key: str, what: str) -> Rule:
    """A star stands alone."""

    def rule(given: Object, old: Object | None, path: str) -> list[Cause]:
        items, field = given.get(key) or [], f"{path}.{key}"
        if not items:
            return [causes.required(field)]
        told = f"if '*' is present, must not specify other {what}"
        return [causes.invalid(field, items, told)] if "*" in items and len(items) > 1 else []

    return rule


def _operations(given: Object, old: Object | None, path: str) -> list[Cause]:
    items = enumerate(given.get("operations") or ())
    odd = [(index, one) for index, one in items if one not in _OPERATIONS]
    return [causes.not_supported(f"{path}.operations[{index}]", one, _OPERATIONS) for index, one in odd]


def _effects(hook: Object, old: Object | None, path: str) -> list[Cause]:
    if hook.get("sideEffects") is None:
        return [causes.required(f"{path}.sideEffects", f"must specify one of {', '.join(_EFFECTS)}")]
    return choice("sideEffects", _EFFECTS)(hook, old, path)


def _timeout(field: str, seconds: int) -> list[Cause]:
    told = "the timeout value must be between 1 and 30 seconds"
    return [] if 1 <= seconds <= _LONGEST else [causes.invalid(field, seconds, told)]


def _client(given: Object, old: Object | None, path: str) -> list[Cause]:
    url, service = given.get("url"), given.get("service")
    if (url is None) == (service is None):
        return [causes.required(path, "exactly one of url or service is required")]
    if url is not None:
        scheme = url.partition(":")[0]
        told = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        return [] if scheme == "https" else [causes.invalid(f"{path}.url", scheme, told)]
    return inside("service", needed("name"), needed("namespace"), value("path", _route), value("port", _port))(
        given, None, path
    )


def _route(field: str, path: str) -> list[Cause]:
    if path == "/":
        return []
    found = [] if path.startswith("/") else [causes.invalid(field, path, "must start with a '/'")]
    steps = path[1:].removesuffix("/").split("/")
    found += [causes.invalid(field, path, f"segment[{i}] may not be empty") for i, one in enumerate(steps) if not one]
    return found


def _port(field: str, number: int) -> list[Cause]:
    told = "port is not valid: must be between 1 and 65535, inclusive"
    return [] if 1 <= number <= 65535 else [causes.invalid(field, number, told)]


configuration: Final = checks(
    each(
        "webhooks",
        _reviews,
        _named,
        each(
            "rules",
            _alone("operations", "operations"),
            _operations,
            _alone("apiGroups", "API groups"),
            _alone("apiVersions", "API versions"),
            needed("resources"),
            choice("scope", _SCOPES),
        ),
        choice("failurePolicy", ("Fail", "Ignore")),
        choice("matchPolicy", ("Equivalent", "Exact")),
        _effects,
        value("timeoutSeconds", _timeout),
        value("namespaceSelector", selector),
        value("objectSelector", selector),
        inside("clientConfig", _client, always=True),
        choice("reinvocationPolicy", ("IfNeeded", "Never")),
    ),
    _once,
)
