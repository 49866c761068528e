"""Validation of the security contexts of Pods and containers."""

import re
from collections.abc import Iterable
from typing import Final

from fairlead.server.registry.validation.formats import relative_path
from fairlead.server.registry.validation.rules import Errors, Rule, Scope, each, field, first_error, inside

_SYSCTL: Final = re.compile(r"([a-z0-9][-_a-z0-9]*[a-z0-9]|[a-z0-9])([./]([a-z0-9][-_a-z0-9]*[a-z0-9]|[a-z0-9]))*")
_SYSCTL_MESSAGE: Final = (
    "must have at most 253 characters and match regex "
    "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")


def _check_user_or_group_id(number: int) -> Iterable[str]:
    return () if 0 <= number <= 2**31 - 1 else ("must be between 0 and 2147483647, inclusive",)


def _check_sysctl_name(name: str) -> Iterable[str]:
    return () if len(name) <= 253 and _SYSCTL.fullmatch(name) else (_SYSCTL_MESSAGE,)


def _check_seccomp_localhost(profile: Scope) -> Errors:
    path = profile.get("localhostProfile")
    if profile.get("type") != "Localhost":
        if path is not None:
            message = "can only be set when seccomp type is Localhost"
            yield profile.invalid("localhostProfile", message, profile.value)
    elif path is None:
        yield profile.required("localhostProfile", "must be set when seccomp type is Localhost")
    else:
        yield from profile.check("localhostProfile", relative_path)


def _check_app_armor_localhost(profile: Scope) -> Errors:
    name = profile.get("localhostProfile")
    if profile.get("type") != "Localhost":
        if name is not None:
            yield profile.invalid("localhostProfile", "can only be set when AppArmor type is Localhost")
    elif name is not None and name != name.strip():
        yield profile.invalid("localhostProfile", "must not be padded with whitespace")
    elif not name:
        yield profile.required("localhostProfile", "must be set when AppArmor type is Localhost")


def _check_no_privilege_escalation(context: Scope) -> Errors:
    """Reject `privileged` and CAP_SYS_ADMIN in a context with allowPrivilegeEscalation: false."""
    if context.get("allowPrivilegeEscalation") is not False:
        return
    if context.get("privileged"):
        yield context.invalid("", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
    for capability in context.items("capabilities.add"):
        if capability == "CAP_SYS_ADMIN":
            message = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield context.invalid("", message)


def _check_share_processes(spec: Scope) -> Errors:
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        message = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield spec.invalid("securityContext.shareProcessNamespace", message, value=True)


_USERS: Final = field("runAsUser", "runAsGroup").check(_check_user_or_group_id)
_SECCOMP: Final = inside(
    "seccompProfile",
    field("type").required_enum(*_PROFILES, detail="type is required when seccompProfile is set"),
    _check_seccomp_localhost,
)
_APP_ARMOR: Final = inside(
    "appArmorProfile",
    first_error(
        field("type").required_enum(*_PROFILES, detail="type is required when appArmorProfile is set"),
        _check_app_armor_localhost,
    ),
)
CONTAINER: Final = inside(
    "securityContext",
    _USERS,
    field("procMount").enum("Default", "Unmasked"),
    field("procMount").invalid_if(
        lambda context: context.get("procMount") == "Unmasked" and context.parent.parent.get("hostUsers") is not False,
        "`hostUsers` must be false to use `Unmasked`",
    ),
    _SECCOMP,
    _check_no_privilege_escalation,
    _APP_ARMOR,
)
POD: Final[tuple[Rule, ...]] = (
    inside(
        "securityContext",
        field("fsGroup").check(_check_user_or_group_id),
        _USERS,
        field("supplementalGroups").values(_check_user_or_group_id),
    ),
    _check_share_processes,
    inside(
        "securityContext",
        each("sysctls", first_error(field("name").required(_check_sysctl_name), field("name").unique())),
        field("fsGroupChangePolicy").enum("Always", "OnRootMismatch"),
        _SECCOMP,
        _APP_ARMOR,
        field("supplementalGroupsPolicy").enum("Merge", "Strict"),
        field("seLinuxChangePolicy").enum("Recursive"),  # the others need a feature gate that is off
    ),
)
