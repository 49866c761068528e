"""Bindings by whom they name: what a request may costs the same however many bindings there are."""

from typing import Any

from fairlead.server.authentication.users import User, service_account_name
from fairlead.server.storage.store import Table
from fairlead.server.storage.stored import Stored

Key = tuple[str, str, str]  # the namespace of the binding, "User" or "Group", the name


class Bindings:
    """The bindings of one table, indexed by their subjects and kept up from the table's own history."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._position = -1
        self._named: dict[Key, dict[str, Stored]] = {}

    def of(self, user: User, namespace: str) -> list[dict[str, Any]]:
        """Those that name a user or a group of theirs, in the order of their names."""
        self._follow()
        found: dict[str, Stored] = {}
        for key in ((namespace, "User", user.name), *((namespace, "Group", group) for group in user.groups)):
            found |= self._named.get(key, {})
        return [found[name].object for name in sorted(found)]

    def _follow(self) -> None:
        table = self._table
        end = table.first + len(table.events)
        if end == self._position:
            return
        events = table.read(self._position) if self._position >= 0 else None
        self._position = end
        if events is None:
            self._named = {}
            for _, stored in table.scan(None):
                self._add(stored)
            return
        for event in events:
            if event.previous is not None:
                for key in _keys(event.previous.object):
                    self._named.get(key, {}).pop(event.previous.object["metadata"]["name"], None)
            if event.type != "DELETED":
                self._add(event.stored)

    def _add(self, stored: Stored) -> None:
        for key in _keys(stored.object):
            self._named.setdefault(key, {})[stored.object["metadata"]["name"]] = stored


def _keys(binding: dict[str, Any]) -> list[Key]:
    namespace = binding["metadata"].get("namespace", "")
    return [named(subject, namespace) for subject in binding.get("subjects") or ()]


def named(subject: dict[str, Any], namespace: str) -> Key:
    """Whom a subject of a binding in `namespace` stands for. An account is a user with a name of its own kind."""
    kind, name = subject.get("kind") or "", subject["name"]
    if kind == "ServiceAccount":
        return (namespace, "User", service_account_name(subject.get("namespace") or namespace, name))
    return (namespace, kind, name)
