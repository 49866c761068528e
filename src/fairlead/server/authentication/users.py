"""A user as requests carry one: a name, groups, and what else the credential says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MASTERS: Final = "system:masters"  # may do everything, whatever RBAC says
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    """Whoever sent a request. Groups are in the order in which they were learnt."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_superuser(self) -> bool:
        return MASTERS in self.groups

    def with_authenticated_group(self) -> "User":
        """This user as someone who showed a credential."""
        if AUTHENTICATED in self.groups:
            return self
        return User(self.name, (*self.groups, AUTHENTICATED), self.uid, self.extra)

    def to_user_info(self) -> dict[str, Any]:
        """As a UserInfo, in which the API shows users."""
        made: dict[str, Any] = {"username": self.name}
        if self.uid:
            made["uid"] = self.uid
        if self.groups:
            made["groups"] = list(self.groups)
        if self.extra:
            made["extra"] = {key: list(values) for key, values in self.extra.items()}
        return made


ADMIN: Final = User("admin", (MASTERS, AUTHENTICATED), "admin")
ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))
SERVER: Final = User("system:apiserver", (MASTERS, AUTHENTICATED))  # the server itself


def service_account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def service_account_name(namespace: str, name: str) -> str:
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def as_service_account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the ServiceAccount that a user name stands for, or None where it stands for none."""
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    parts = name[len(_SERVICE_ACCOUNT) :].split(":")
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None
