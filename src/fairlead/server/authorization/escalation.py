"""What a write must be allowed beyond its own verb: to create by an update, and to grant what one does not have."""

from typing import TYPE_CHECKING, Final

from fairlead.server.authorization import rules
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.authorization.authorizer import Rule, require_access
from fairlead.server.authorization.rbac import GROUP, RBAC, RoleMissing
from fairlead.server.errors.field_errors import quote_go
from fairlead.server.errors.statuses import forbidden, not_found
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.registry.resource import Object

if TYPE_CHECKING:
    from fairlead.server.write.pipeline import Write

_EVERYTHING: Final[list[Rule]] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_OF_COLLECTION: Final = ("ownerReferences", "finalizers", "managedFields")


def may_create_by_update(write: "Write") -> None:
    """A PUT or an apply that would create needs the verb create too."""
    resource, subresource = write.resource, write.subresource
    require_access(
        write.server.authorizer,
        Attributes(
            write.request.user,
            "create",
            resource.group,
            resource.version,
            resource.plural,
            subresource,
            write.namespace,
            write.name,
        ),
    )


def may_grant(write: "Write", obj: Object, old: Object | None) -> None:
    """Refuse a role or binding that gives more than its writer has, unless `escalate` or `bind` allows it."""
    authorizer = write.server.authorizer
    user, plural = write.request.user, write.resource.plural
    if write.resource.group != GROUP or not isinstance(authorizer, RBAC) or user.is_superuser:
        return
    if old is not None and _only_collected(obj, old):
        return
    roles = plural in ("roles", "clusterroles")
    reference = {"kind": "", "name": write.name} if roles else obj.get("roleRef") or {}
    bound = plural if roles else "roles" if reference.get("kind") == "Role" else "clusterroles"
    verb = "escalate" if roles else "bind"
    asked = Attributes(user, verb, GROUP, "*", bound, "", write.namespace, reference.get("name") or "")
    if authorizer.decide(asked).allowed:
        return
    if roles:
        wanted: list[Rule] = obj.get("rules") or []
    else:
        try:
            wanted = authorizer.rules_of(reference, write.namespace)
        except RoleMissing as missing:
            raise not_found(write.resource, missing.name) from None
    owned, problems = authorizer.rules(user, write.namespace)
    name = (obj.get("metadata") or {}).get("name") or ""
    if lacking := rules.missing(owned, wanted):
        groups = " ".join(quote_go(group) for group in user.groups)
        who = f"user {quote_go(user.name)} (groups=[{groups}])"
        message = f"{who} is attempting to grant RBAC permissions not currently held:\n{rules.told(lacking)}"
        if problems:
            message += f"; resolution errors: [{' '.join(problems)}]"
        raise forbidden(write.resource, name, message)
    if (_aggregates(obj) or (old is not None and _aggregates(old))) and rules.missing(owned, _EVERYTHING):
        raise forbidden(write.resource, name, "must have cluster-admin privileges to use the aggregationRule")


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(obj: Object, old: Object) -> bool:
    """Whether an update changes nothing but what garbage collection needs to change."""
    return exactly_equal(_without(obj), _without(old))


def _without(obj: Object) -> Object:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in _OF_COLLECTION}}
