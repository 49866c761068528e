"""Role-based access control: bindings say who has which role, roles say what is allowed."""

from collections.abc import Iterator
from typing import Any, Final

from fairlead.server.authentication.users import User
from fairlead.server.authorization import rules
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.authorization.authorizer import Decision, Rule
from fairlead.server.authorization.bindings import Bindings, named
from fairlead.server.errors.field_errors import quote_go
from fairlead.server.storage.store import Store

GROUP: Final = "rbac.authorization.k8s.io"
Object = dict[str, Any]


class RoleMissing(Exception):
    """A binding's role is not there."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind.lower()}.{GROUP} {quote_go(name)} not found")
        self.name = name


class RBAC:
    """Judges by the roles and bindings in the store as they are now. Members of system:masters may do everything."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Bindings] = {}

    def decide(self, asked: Attributes) -> Decision:
        if asked.user.is_superuser:
            return Decision(True)
        problems: list[str] = []
        for binding, rule in self._granted(asked.user, asked.namespace, problems):
            if rules.allows(rule, asked):
                return Decision(True, f"RBAC: allowed by {_source(binding, asked.user)}")
        return Decision(False, f"RBAC: {_joined(problems)}" if problems else "")

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        problems: list[str] = []
        return [rule for _, rule in self._granted(user, namespace, problems)], problems

    def rules_of(self, reference: Object, namespace: str) -> list[Rule]:
        """The rules behind a roleRef. Raises RoleMissing."""
        kind, name = reference.get("kind") or "", reference.get("name") or ""
        plural, space = ("roles", namespace) if kind == "Role" else ("clusterroles", "")
        stored = self._store.table(GROUP, plural).get(space, name)
        if stored is None:
            raise RoleMissing(kind, name)
        found: list[Rule] = stored.object.get("rules") or []
        return found

    def _granted(self, user: User, namespace: str, problems: list[str]) -> Iterator[tuple[Object, Rule]]:
        for plural, space in (("clusterrolebindings", ""), ("rolebindings", namespace)):
            if plural == "rolebindings" and not namespace:
                return
            for binding in self._bindings(plural).of(user, space):
                try:
                    found = self.rules_of(binding["roleRef"], space)
                except RoleMissing as missing:
                    problems.append(str(missing))
                    continue
                yield from ((binding, rule) for rule in found)

    def _bindings(self, plural: str) -> Bindings:
        known = self._known.get(plural)
        if known is None:
            known = self._known[plural] = Bindings(self._store.table(GROUP, plural))
        return known


def _source(binding: Object, user: User) -> str:
    """What granted something, as a review tells it: by the first of the subjects that is the user."""
    namespace = binding["metadata"].get("namespace", "")
    mine = {(namespace, "User", user.name), *((namespace, "Group", group) for group in user.groups)}
    subject = next(subject for subject in binding["subjects"] if named(subject, namespace) in mine)
    name, kind = binding["metadata"]["name"], "ClusterRoleBinding"
    if namespace:
        name, kind = f"{name}/{namespace}", "RoleBinding"
    whom = subject["name"]
    if subject["kind"] == "ServiceAccount":
        whom = f"{whom}/{subject.get('namespace') or namespace}"
    role = binding["roleRef"]
    return f"{kind} {quote_go(name)} of {role['kind']} {quote_go(role['name'])} to {subject['kind']} {quote_go(whom)}"


def _joined(problems: list[str]) -> str:
    said = list(dict.fromkeys(problems))
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]"
