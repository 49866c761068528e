"""Configurations of admission webhooks."""

from typing import Final
from urllib.parse import urlsplit

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import Rule, checks, choice, each, inside, value
from fairlead.server.registry.validation.vocabulary import Object, qualified, selector, subdomain
from fairlead.server.write import names

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_REVIEWS: Final = ("v1", "v1beta1")
_EFFECTS: Final = ("None", "NoneOnDryRun")
_LONGEST: Final = 30
_MOST: Final = 64  # conditions
_FORM: Final = "; desired format: https://host[/path]"


def _named(hook: Object, old: Object | None, path: str) -> list[FieldError]:
    name, field = hook.get("name") or "", f"{path}.name"
    if not name:
        return [field_errors.required(field)]
    if wrong := subdomain(field, name):
        return wrong
    told = "should be a domain with at least three segments separated by dots"
    return [] if name.count(".") >= 2 else [field_errors.invalid(field, name, told)]


def _once(new: Object, old: Object | None, path: str) -> list[FieldError]:
    given = [hook.get("name") or "" for hook in new.get("webhooks") or ()]
    repeated = [(i, name) for i, name in enumerate(given) if name in given[:i]]
    return [field_errors.duplicate(f"webhooks[{i}].name", name) for i, name in repeated]


def _reviews(hook: Object, old: Object | None, path: str) -> list[FieldError]:
    given, field = hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions"
    if not given:
        return [field_errors.required(field, f"must specify one of {', '.join(_REVIEWS)}")]
    found: list[FieldError] = []
    for index, version in enumerate(given):
        told = ["duplicate version"] if version in given[:index] else names.dns1035(version)
        found += [field_errors.invalid(f"{field}[{index}]", version, one) for one in told]
    known = any(version in _REVIEWS for version in given)
    told_of = f"must include at least one of {', '.join(_REVIEWS)}"
    return found if known else [*found, field_errors.invalid(field, given, told_of)]


def _alone(key: str, what: str) -> Rule:
    """A star stands alone."""

    def rule(given: Object, old: Object | None, path: str) -> list[FieldError]:
        items, field = given.get(key) or [], f"{path}.{key}"
        if not items:
            return [field_errors.required(field)]
        told = f"if '*' is present, must not specify other {what}"
        return [field_errors.invalid(field, items, told)] if "*" in items and len(items) > 1 else []

    return rule


def _operations(given: Object, old: Object | None, path: str) -> list[FieldError]:
    items = enumerate(given.get("operations") or ())
    odd = [(index, one) for index, one in items if one not in _OPERATIONS]
    return [field_errors.not_supported(f"{path}.operations[{index}]", one, _OPERATIONS) for index, one in odd]


def _effects(hook: Object, old: Object | None, path: str) -> list[FieldError]:
    if hook.get("sideEffects") is None:
        return [field_errors.required(f"{path}.sideEffects", f"must specify one of {', '.join(_EFFECTS)}")]
    return choice("sideEffects", _EFFECTS)(hook, old, path)


def _timeout(field: str, seconds: int) -> list[FieldError]:
    told = "the timeout value must be between 1 and 30 seconds"
    return [] if 1 <= seconds <= _LONGEST else [field_errors.invalid(field, seconds, told)]


def _client(given: Object, old: Object | None, path: str) -> list[FieldError]:
    url, service = given.get("url"), given.get("service")
    if (url is None) == (service is None):
        return [field_errors.required(path, "exactly one of url or service is required")]
    if url is not None:
        return _address(f"{path}.url", url)
    return inside("service", _named_service, value("port", _port), value("path", _route))(given, None, path)


def _named_service(given: Object, old: Object | None, path: str) -> list[FieldError]:
    """A real server takes one for the other."""
    swapped = {"name": "namespace", "namespace": "name"}
    return [field_errors.required(f"{path}.{called}") for called, key in swapped.items() if not given.get(key)]


def _address(field: str, url: str) -> list[FieldError]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [field_errors.required(field, f"url must be a valid URL: {error}{_FORM}")]
    found: list[FieldError] = []
    if parts.scheme != "https":
        found.append(field_errors.invalid(field, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    who, _, host = parts.netloc.rpartition("@")
    if not host:
        found.append(field_errors.invalid(field, "", f"host must be specified{_FORM}"))
    if who:
        found.append(field_errors.invalid(field, who, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(field_errors.invalid(field, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(field_errors.invalid(field, parts.query, "query parameters are not permitted in the URL"))
    return found


def _route(field: str, path: str) -> list[FieldError]:
    if path in ("", "/"):
        return []
    if path == "//":
        return [field_errors.invalid(field, path, "segment[0] may not be empty")]
    found = [] if path.startswith("/") else [field_errors.invalid(field, path, "must start with a '/'")]
    for index, step in enumerate(path[1:].removesuffix("/").split("/")):
        told = [f": {one}" for one in names.subdomain(step)] if step else [" may not be empty"]
        found += [field_errors.invalid(field, path, f"segment[{index}]{one}") for one in told]
    return found


def _resources(given: Object, old: Object | None, path: str) -> list[FieldError]:
    """Resources and subresources, none of them said twice by a star."""
    items, field = given.get("resources") or [], f"{path}.resources"
    found = [] if items else [field_errors.required(field)]
    whole: set[str] = set()
    every: set[str] = set()
    for index, item in enumerate(items):
        here, (name, _, part) = f"{field}[{index}]", item.partition("/")
        if not item:
            found.append(field_errors.required(here))
        if not part:
            continue
        if name in whole:
            found.append(field_errors.invalid(here, item, f"if '{name}/*' is present, must not specify {item}"))
        if part in every:
            found.append(field_errors.invalid(here, item, f"if '*/{part}' is present, must not specify {item}"))
        whole |= {name} if part == "*" else set()
        every |= {part} if name == "*" else set()
    if len(items) > 1 and "*/*" in items:
        found.append(field_errors.invalid(field, items, "if '*/*' is present, must not specify other resources"))
    plain = [item for item in items if item and "/" not in item]
    if "*" in items and plain[-1] != "*":
        told = "if '*' is present, must not specify other resources without subresources"
        found.append(field_errors.invalid(field, items, told))
    return found


def _versions(given: Object, old: Object | None, path: str) -> list[FieldError]:
    empty = [index for index, version in enumerate(given.get("apiVersions") or ()) if not version]
    return [field_errors.required(f"{path}.apiVersions[{index}]") for index in empty]


def _conditions(hook: Object, old: Object | None, path: str) -> list[FieldError]:
    """Conditions under which a webhook is asked; whether their expressions compile is not looked at."""
    given, field = hook.get("matchConditions") or [], f"{path}.matchConditions"
    found = [field_errors.too_many(field, len(given), _MOST)] if len(given) > _MOST else []
    names_before: set[str] = set()
    for index, one in enumerate(given):
        here, name = f"{field}[{index}]", one.get("name") or ""
        found += [] if (one.get("expression") or "").strip() else [field_errors.required(f"{here}.expression")]
        found += qualified(f"{here}.name", name) if name else [field_errors.required(f"{here}.name")]
        if name in names_before:
            found.append(field_errors.duplicate(f"{here}.name", name))
        names_before |= {name} if name else set()
    return found


def _port(field: str, number: int) -> list[FieldError]:
    told = "port is not valid: must be between 1 and 65535, inclusive"
    return [] if 1 <= number <= 65535 else [field_errors.invalid(field, number, told)]


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
            _versions,
            _resources,
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
        _conditions,
    ),
    _once,
)
