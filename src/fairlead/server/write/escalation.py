"""Access checks beyond the verb of a write: create by update, and privilege escalation through RBAC objects."""

from typing import TYPE_CHECKING, Final

from fairlead.api.gojson import quote_go
from fairlead.server.authorization import rules
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.authorization.authorizer import Rule, require_access
from fairlead.server.authorization.rbac import GROUP, RBAC, RoleMissing
from fairlead.server.errors.statuses import forbidden, not_found
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.registry.resource import Object

if TYPE_CHECKING:
    from fairlead.server.write.write_request import Write

_EVERYTHING: Final[list[Rule]] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_GC_FIELDS: Final = ("ownerReferences", "finalizers", "managedFields")


def require_create_access(write: "Write") -> None:
    """Raise 403 unless the user has the verb create, which a PUT or an apply that creates an object also needs."""
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


def reject_escalation(write: "Write", obj: Object, old: Object | None) -> None:
    """Raise 403 for a role or binding that grants more than its writer has, unless `escalate` or `bind` allows it."""
    authorizer = write.server.authorizer
    user, plural = write.request.user, write.resource.plural
    if write.resource.group != GROUP or not isinstance(authorizer, RBAC) or user.is_superuser:
        return
    if old is not None and _is_gc_change(obj, old):
        return
    are_roles = plural in ("roles", "clusterroles")
    reference = {"kind": "", "name": write.name} if are_roles else obj.get("roleRef") or {}
    bound = plural if are_roles else "roles" if reference.get("kind") == "Role" else "clusterroles"
    verb = "escalate" if are_roles else "bind"
    attributes = Attributes(user, verb, GROUP, "*", bound, "", write.namespace, reference.get("name") or "")
    if authorizer.decide(attributes).allowed:
        return
    if are_roles:
        granted: list[Rule] = obj.get("rules") or []
    else:
        try:
            granted = authorizer.get_role_rules(reference, write.namespace)
        except RoleMissing as find_missing_rules:
            raise not_found(write.resource, find_missing_rules.name) from None
    held_rules, problems = authorizer.rules(user, write.namespace)
    name = (obj.get("metadata") or {}).get("name") or ""
    if escalated := rules.find_missing_rules(held_rules, granted):
        groups = " ".join(quote_go(group) for group in user.groups)
        user_text = f"user {quote_go(user.name)} (groups=[{groups}])"
        message = (
            f"{user_text} is attempting to grant RBAC permissions not currently held:\n{rules.describe(escalated)}"
        )
        if problems:
            message += f"; resolution errors: [{' '.join(problems)}]"
        raise forbidden(write.resource, name, message)
    if (_has_aggregation_rule(obj) or (old is not None and _has_aggregation_rule(old))) and rules.find_missing_rules(
        held_rules, _EVERYTHING
    ):
        raise forbidden(write.resource, name, "must have cluster-admin privileges to use the aggregationRule")


def _has_aggregation_rule(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_gc_change(obj: Object, old: Object) -> bool:
    """Return whether an update changes only fields that the garbage collector changes."""
    return exactly_equal(_remove_gc_fields(obj), _remove_gc_fields(old))


def _remove_gc_fields(obj: Object) -> Object:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in _GC_FIELDS}}
