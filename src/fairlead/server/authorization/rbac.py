"""Role-based access control: bindings say who has which role, roles say what is allowed."""

from collections.abc import Iterator
from typing import Any, Final

from fairlead.server.authorization import rules
from fairlead.server.authorization.attributes import Attributes
from fairlead.server.authorization.deciding import Decision, Rule
from fairlead.server.causes import quoted
from fairlead.server.identity.users import User, service_account_name
from fairlead.server.store import Store

GROUP: Final = "rbac.authorization.k8s.io"
Object = dict[str, Any]


class RoleMissing(Exception):
    """A binding's role is not there."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind.lower()}.{GROUP} {quoted(name)} not found")
        self.name = name


class RBAC:
    """Judges by the roles and bindings in the store as they are now. Members of system:masters may do everything."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def decide(self, asked: Attributes) -> Decision:
        if asked.user.is_master:
            return Decision(True)
        problems: list[str] = []
        for source, rule in self._granted(asked.user, asked.namespace, problems):
            if rules.allows(rule, asked):
                return Decision(True, f"RBAC: allowed by {source}")
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

    def _granted(self, user: User, namespace: str, problems: list[str]) -> Iterator[tuple[str, Rule]]:
        for plural, space in (("clusterrolebindings", ""), ("rolebindings", namespace)):
            if plural == "rolebindings" and not namespace:
                return
            for _, stored in self._store.table(GROUP, plural).scan(space):
                binding = stored.object
                subject = next((s for s in binding.get("subjects") or () if _is(user, s, space)), None)
                if subject is None:
                    continue
                try:
                    found = self.rules_of(binding["roleRef"], space)
                except RoleMissing as missing:
                    problems.append(str(missing))
                    continue
                source = _source(binding, subject, space)
                yield from ((source, rule) for rule in found)


def _is(user: User, subject: Object, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject["name"]
    if kind == "User":
        return bool(user.name == name)
    if kind == "Group":
        return name in user.groups
    space = subject.get("namespace") or namespace
    return bool(space) and user.name == service_account_name(space, name)


def _source(binding: Object, subject: Object, namespace: str) -> str:
    name, kind = binding["metadata"]["name"], "ClusterRoleBinding"
    if namespace:
        name, kind = f"{name}/{namespace}", "RoleBinding"
    whom = subject["name"]
    if subject["kind"] == "ServiceAccount":
        whom = f"{whom}/{subject.get('namespace') or namespace}"
    role = binding["roleRef"]
    return f"{kind} {quoted(name)} of {role['kind']} {quoted(role['name'])} to {subject['kind']} {quoted(whom)}"


def _joined(problems: list[str]) -> str:
    said = list(dict.fromkeys(problems))
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]"
