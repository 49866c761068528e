"""What Pods and containers may do on their node: users, groups, profiles, kernel parameters."""

import re
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.paths import below
from fairlead.server.registry.validation.rules import Rule, choice, inside, value
from fairlead.server.registry.validation.vocabulary import Object

_PARAMETER: Final = re.compile(r"([a-z0-9][-_a-z0-9]*[a-z0-9]|[a-z0-9])([./]([a-z0-9][-_a-z0-9]*[a-z0-9]|[a-z0-9]))*")
_PARAMETER_TOLD: Final = (
    "must have at most 253 characters and match regex "
    "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_SECCOMP: Final = ("Localhost", "RuntimeDefault", "Unconfined")


def _identity(field: str, number: int) -> list[FieldError]:
    """A user's or group's number."""
    told = "must be between 0 and 2147483647, inclusive"
    return [] if 0 <= number <= 2**31 - 1 else [field_errors.invalid(field, number, told)]


def _seccomp(given: Object, old: Object | None, path: str) -> list[FieldError]:
    kind, own, field = given.get("type") or "", given.get("localhostProfile"), f"{path}.localhostProfile"
    found = [] if kind else [field_errors.required(f"{path}.type", "type is required when seccompProfile is set")]
    if kind and kind not in _SECCOMP:
        found.append(field_errors.not_supported(f"{path}.type", kind, _SECCOMP))
    if kind != "Localhost":
        told = "can only be set when seccomp type is Localhost"
        return found if own is None else [*found, field_errors.invalid(field, given, told)]
    if own is None:
        return [*found, field_errors.required(field, "must be set when seccomp type is Localhost")]
    return found + below(field, own)


def _app_armor(given: Object, old: Object | None, path: str) -> list[FieldError]:
    kind, own, field = given.get("type") or "", given.get("localhostProfile"), f"{path}.localhostProfile"
    needed = "must be set when AppArmor type is Localhost"
    if not kind:
        return [field_errors.required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in _SECCOMP:
        return [field_errors.not_supported(f"{path}.type", kind, _SECCOMP)]
    if kind != "Localhost":
        told = "can only be set when AppArmor type is Localhost"
        return [] if own is None else [field_errors.invalid(field, own, told)]
    if own is not None and own != own.strip():
        return [field_errors.invalid(field, own, "must not be padded with whitespace")]
    return [] if own else [field_errors.required(field, needed)]


def _groups(given: Object, old: Object | None, path: str) -> list[FieldError]:
    groups = enumerate(given.get("supplementalGroups") or ())
    return [cause for at, number in groups for cause in _identity(f"{path}.supplementalGroups[{at}]", number)]


def _parameters(given: Object, old: Object | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, one in enumerate(given.get("sysctls") or ()):
        field, name = f"{path}.sysctls[{index}].name", one.get("name") or ""
        if not name:
            found.append(field_errors.required(field))
        elif len(name) > 253 or not _PARAMETER.fullmatch(name):
            found.append(field_errors.invalid(field, name, _PARAMETER_TOLD))
        elif name in seen:
            found.append(field_errors.duplicate(field, name))
        seen.add(name)
    return found


def _escalation(given: Object, old: Object | None, path: str) -> list[FieldError]:
    """Nothing that gives more rights goes with giving none."""
    if given.get("allowPrivilegeEscalation") is not False:
        return []
    start = "cannot set `allowPrivilegeEscalation` to false and"
    found = [field_errors.invalid(path, given, f"{start} `privileged` to true")] if given.get("privileged") else []
    added = (given.get("capabilities") or {}).get("add") or ()
    told = f"{start} `capabilities.Add` CAP_SYS_ADMIN"
    return found + [field_errors.invalid(path, given, told) for one in added if one == "CAP_SYS_ADMIN"]


def _processes(*, host_users: bool) -> Rule:
    def rule(given: Object, old: Object | None, path: str) -> list[FieldError]:
        found = choice("procMount", ("Default", "Unmasked"))(given, None, path)
        if host_users and given.get("procMount") == "Unmasked":
            told = "`hostUsers` must be false to use `Unmasked`"
            found.append(field_errors.invalid(f"{path}.procMount", "Unmasked", told))
        return found

    return rule


def of_container(given: Object, path: str, *, host_users: bool) -> list[FieldError]:
    return inside(
        "securityContext",
        value("runAsUser", _identity),
        value("runAsGroup", _identity),
        _processes(host_users=host_users),
        inside("seccompProfile", _seccomp),
        _escalation,
        inside("appArmorProfile", _app_armor),
    )(given, None, path)


def _shared(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    if not (spec.get("shareProcessNamespace") and spec.get("hostPID")):
        return []
    told = "ShareProcessNamespace and HostPID cannot both be enabled"
    return [field_errors.invalid(f"{path}.securityContext.shareProcessNamespace", True, told)]


_CONTEXT: Final = (
    value("fsGroup", _identity),
    value("runAsUser", _identity),
    value("runAsGroup", _identity),
    _groups,
)
_PROFILES: Final = (
    _parameters,
    choice("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
    inside("seccompProfile", _seccomp),
    inside("appArmorProfile", _app_armor),
    choice("supplementalGroupsPolicy", ("Merge", "Strict")),
    choice("seLinuxChangePolicy", ("Recursive",)),  # others are behind a gate that is shut
)


def of_pod(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    found = inside("securityContext", *_CONTEXT)(spec, None, path) + _shared(spec, None, path)
    return found + inside("securityContext", *_PROFILES)(spec, None, path)
