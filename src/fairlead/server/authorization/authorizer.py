"""The `Authorizer` interface, its `Decision`, and the 403 response to a denied request."""

from typing import Any, NamedTuple, Protocol

from fairlead.api.gojson import quote_go
from fairlead.server.authentication.users import User
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.errors.statuses import StatusError, status_error

Rule = dict[str, Any]  # a PolicyRule


class Decision(NamedTuple):
    """Whether a request is allowed, and the reason that a SubjectAccessReview shows."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides whether a user may do what a request asks for, and lists the rules of a user."""

    def decide(self, attributes: Attributes) -> Decision: ...

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """Return the rules of a user in a namespace ("" for cluster-wide rules only), and the lookup errors."""


class AlwaysAllow:
    """Allows everything to everyone."""

    def decide(self, attributes: Attributes) -> Decision:
        return Decision(True)

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}], []


def require_access(authorizer: Authorizer, attributes: Attributes) -> None:
    """Raise 403 unless the authorizer allows the verb and resource in `attributes`."""
    decision = authorizer.decide(attributes)
    if not decision.allowed:
        raise access_denied(attributes, decision.reason)


def access_denied(attributes: Attributes, reason: str) -> StatusError:
    """Return the 403 for a denied request, with a real server's message."""
    suffix = f": {reason}" if reason else ""
    denial = f"User {quote_go(attributes.user.name)} cannot {attributes.verb}"
    if attributes.path:
        return status_error(403, "Forbidden", f"forbidden: {denial} path {quote_go(attributes.path)}{suffix}", {})
    scope = f"in the namespace {quote_go(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    denied_resource = f"resource {quote_go(attributes.full_resource)} in API group {quote_go(attributes.group)}"
    message = f"{denial} {denied_resource} {scope}{suffix}"
    resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    subject = f'{resource} "{attributes.name}"' if attributes.name else resource
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return status_error(
        403, "Forbidden", f"{subject} is forbidden: {message}", {key: value for key, value in details.items() if value}
    )
