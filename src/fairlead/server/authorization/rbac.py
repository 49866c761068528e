"""Role-based access control: bindings give users roles, and roles allow requests."""

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.gojson import quote_go
from fairlead.server.authentication.users import User
from fairlead.server.authorization import rules
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.authorization.authorizer import Decision, Rule
from fairlead.server.authorization.bindings import Bindings, subject_key
from fairlead.server.storage.store import Store

GROUP: Final = "rbac.authorization.k8s.io"
Object = dict[str, Any]


class RoleMissing(Exception):
    """Raised if the role that a binding refers to does not exist."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind.lower()}.{GROUP} {quote_go(name)} not found")
        self.name = name


class RBAC:
    """Authorizes by the roles and bindings in the store. Members of system:masters may do everything."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._indexes: dict[str, Bindings] = {}

    def decide(self, attributes: Attributes) -> Decision:
        if attributes.user.is_superuser:
            return Decision(True)
        problems: list[str] = []
        for binding, rule in self._find_granted_rules(attributes.user, attributes.namespace, problems):
            if rules.allows(rule, attributes):
                return Decision(True, f"RBAC: allowed by {_describe_source(binding, attributes.user)}")
        return Decision(False, f"RBAC: {_join_unique(problems)}" if problems else "")

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        problems: list[str] = []
        return [rule for _, rule in self._find_granted_rules(user, namespace, problems)], problems

    def get_role_rules(self, reference: Object, namespace: str) -> list[Rule]:
        """Return the rules of the role that a binding's roleRef names. Raises RoleMissing."""
        kind, name = reference.get("kind") or "", reference.get("name") or ""
        plural, space = ("roles", namespace) if kind == "Role" else ("clusterroles", "")
        stored = self._store.table(GROUP, plural).get(space, name)
        if stored is None:
            raise RoleMissing(kind, name)
        rules: list[Rule] = stored.object.get("rules") or []
        return rules

    def _find_granted_rules(self, user: User, namespace: str, problems: list[str]) -> Iterator[tuple[Object, Rule]]:
        for plural, space in (("clusterrolebindings", ""), ("rolebindings", namespace)):
            if plural == "rolebindings" and not namespace:
                return
            for binding in self._get_bindings(plural).find(user, space):
                try:
                    role_rules = self.get_role_rules(binding["roleRef"], space)
                except RoleMissing as missing_role:
                    problems.append(str(missing_role))
                    continue
                yield from ((binding, rule) for rule in role_rules)

    def _get_bindings(self, plural: str) -> Bindings:
        bindings = self._indexes.get(plural)
        if bindings is None:
            bindings = self._indexes[plural] = Bindings(self._store.table(GROUP, plural))
        return bindings


def _describe_source(binding: Object, user: User) -> str:
    """Return the reason of an allowed SubjectAccessReview: the binding, its role and the first matching subject."""
    namespace = binding["metadata"].get("namespace", "")
    keys = {(namespace, "User", user.name), *((namespace, "Group", group) for group in user.groups)}
    subject = next(subject for subject in binding["subjects"] if subject_key(subject, namespace) in keys)
    name, kind = binding["metadata"]["name"], "ClusterRoleBinding"
    if namespace:
        name, kind = f"{name}/{namespace}", "RoleBinding"
    target = subject["name"]
    if subject["kind"] == "ServiceAccount":
        target = f"{target}/{subject.get('namespace') or namespace}"
    role = binding["roleRef"]
    return f"{kind} {quote_go(name)} of {role['kind']} {quote_go(role['name'])} to {subject['kind']} {quote_go(target)}"


def _join_unique(problems: list[str]) -> str:
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
