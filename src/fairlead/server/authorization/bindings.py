"""An index of role bindings by subject, so that a decision costs the same however many bindings exist."""

from typing import Any

from fairlead.server.authentication.users import User, service_account_name
from fairlead.server.storage.store import ObjectTable
from fairlead.server.storage.stored import Stored

Key = tuple[str, str, str]  # the namespace of the binding, "User" or "Group", the name


class Bindings:
    """The RoleBindings or ClusterRoleBindings of a table, indexed by subject and updated from the table's events."""

    def __init__(self, table: ObjectTable) -> None:
        self._table = table
        self._position = -1
        self._by_subject: dict[Key, dict[str, Stored]] = {}

    def find(self, user: User, namespace: str) -> list[dict[str, Any]]:
        """Return the bindings whose subjects contain a user or one of the user's groups, sorted by name."""
        self._update()
        bindings: dict[str, Stored] = {}
        for key in ((namespace, "User", user.name), *((namespace, "Group", group) for group in user.groups)):
            bindings |= self._by_subject.get(key, {})
        return [bindings[name].object for name in sorted(bindings)]

    def _update(self) -> None:
        table = self._table
        end = table.first + len(table.events)
        if end == self._position:
            return
        events = table.events_from(self._position) if self._position >= 0 else None
        self._position = end
        if events is None:
            self._by_subject = {}
            for _, stored in table.scan(None):
                self._add(stored)
            return
        for event in events:
            if event.previous is not None:
                for key in _list_subject_keys(event.previous.object):
                    self._by_subject.get(key, {}).pop(event.previous.object["metadata"]["name"], None)
            if event.type != "DELETED":
                self._add(event.stored)

    def _add(self, stored: Stored) -> None:
        for key in _list_subject_keys(stored.object):
            self._by_subject.setdefault(key, {})[stored.object["metadata"]["name"]] = stored


def _list_subject_keys(binding: dict[str, Any]) -> list[Key]:
    namespace = binding["metadata"].get("namespace", "")
    return [subject_key(subject, namespace) for subject in binding.get("subjects") or ()]


def subject_key(subject: dict[str, Any], namespace: str) -> Key:
    """Return the index key of a binding's subject. A ServiceAccount has the key of its user name."""
    kind, name = subject.get("kind") or "", subject["name"]
    if kind == "ServiceAccount":
        return (namespace, "User", service_account_name(subject.get("namespace") or namespace, name))
    return (namespace, kind, name)
