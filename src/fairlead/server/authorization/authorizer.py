"""An authorizer's decision, and the refusal that tells of it."""

from typing import Any, NamedTuple, Protocol

from fairlead.server.authentication.users import User
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.errors.field_errors import quote_go
from fairlead.server.errors.statuses import StatusError, status_error

Rule = dict[str, Any]  # a PolicyRule


class Decision(NamedTuple):
    """Whether it is allowed, and what a review tells of the reason."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Judges each request once its user is known."""

    def decide(self, asked: Attributes) -> Decision: ...

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """The rules that a user has in a namespace ("" for cluster-wide ones only), and what could not be resolved."""


class AlwaysAllow:
    """Everyone may do everything."""

    def decide(self, asked: Attributes) -> Decision:
        return Decision(True)

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}], []


def require_access(authorizer: Authorizer, asked: Attributes) -> None:
    """Raise the 403 that a real server answers unless it is allowed."""
    decision = authorizer.decide(asked)
    if not decision.allowed:
        raise access_denied(asked, decision.reason)


def access_denied(asked: Attributes, reason: str) -> StatusError:
    told = f": {reason}" if reason else ""
    who = f"User {quote_go(asked.user.name)} cannot {asked.verb}"
    if asked.path:
        return status_error(403, "Forbidden", f"forbidden: {who} path {quote_go(asked.path)}{told}", {})
    where = f"in the namespace {quote_go(asked.namespace)}" if asked.namespace else "at the cluster scope"
    message = f"{who} resource {quote_go(asked.full_resource)} in API group {quote_go(asked.group)} {where}{told}"
    called = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    named = f'{called} "{asked.name}"' if asked.name else called
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return status_error(
        403, "Forbidden", f"{named} is forbidden: {message}", {key: value for key, value in details.items() if value}
    )
