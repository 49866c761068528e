"""The user of a request: a name, groups, a uid and extra values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MASTERS: Final = "system:masters"  # may do everything, regardless of RBAC
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request. `groups` are in the order in which authentication added them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_superuser(self) -> bool:
        return MASTERS in self.groups

    def with_authenticated_group(self) -> "User":
        """Return this user with the group system:authenticated added."""
        if AUTHENTICATED in self.groups:
            return self
        return User(self.name, (*self.groups, AUTHENTICATED), self.uid, self.extra)

    def to_user_info(self) -> dict[str, Any]:
        """Return the user as a UserInfo object of authentication.k8s.io/v1."""
        info: dict[str, Any] = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


ADMIN: Final = User("admin", (MASTERS, AUTHENTICATED), "admin")
ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))
SERVER: Final = User("system:apiserver", (MASTERS, AUTHENTICATED))  # the server itself


def service_account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def service_account_name(namespace: str, name: str) -> str:
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def as_service_account(name: str) -> tuple[str, str] | None:
    """Return (namespace, name) for a user name such as system:serviceaccount:default:builder, or None for others."""
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    parts = name[len(_SERVICE_ACCOUNT) :].split(":")
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None
