"""The draft of an object, which a decision function reads and changes."""

from collections.abc import MutableMapping
from typing import Any

from fairlead.writes.access_log import AccessLog
from fairlead.writes.errors import WriteError
from fairlead.writes.tracked import TrackedMap


class Draft(TrackedMap):
    """A copy of an object that a decision function reads and changes. It has the properties of an Object.

    Use the draft like a dict, or through the properties. If a field is missing, its property is an empty map that can
    be filled: `draft.status["phase"] = "Ready"` works on an object without status.
    """

    __slots__ = ()

    def __init__(self, log: AccessLog) -> None:
        super().__init__(log, (), log.base)

    def _map_at(self, *keys: str) -> MutableMapping[str, Any]:
        current_map: Any = self
        for key in keys:
            if isinstance(current_map, TrackedMap):
                assigned = current_map.assigned_map(key)
                current_map = current_map.get_map(key) if assigned is None else assigned
            else:
                current_map = current_map.setdefault(key, {})  # A plain map that the function itself assigned.
            if current_map is None:
                raise WriteError(
                    f"{self.name}: {'.'.join(keys)} is not a map in this object: read it as draft[{keys[0]!r}] instead"
                )
        result: MutableMapping[str, Any] = current_map
        return result

    @property
    def metadata(self) -> MutableMapping[str, Any]:
        return self._map_at("metadata")

    @property
    def labels(self) -> MutableMapping[str, Any]:
        return self._map_at("metadata", "labels")

    @property
    def annotations(self) -> MutableMapping[str, Any]:
        return self._map_at("metadata", "annotations")

    @property
    def spec(self) -> MutableMapping[str, Any]:
        return self._map_at("spec")

    @property
    def status(self) -> MutableMapping[str, Any]:
        return self._map_at("status")

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str | None:
        return self.metadata.get("namespace") or None

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid") or "")

    @property
    def generation(self) -> int:
        return int(self.metadata.get("generation") or 0)

    @property
    def deleting(self) -> bool:
        return bool(self.metadata.get("deletionTimestamp"))

    def condition(self, type: str) -> Any:  # noqa: A002 - the API's own word
        """Return the status condition of that type, or None.

        The access log records the types of the conditions up to the result. If there is no such condition, it records
        all types and the length of the list.
        """
        conditions = self.status.get("conditions")
        if conditions is not None and not isinstance(conditions, list):
            raise WriteError(
                f"{self.name}: status.conditions is not a list, so no condition can be written: remove the field with "
                "kubectl edit --subresource=status"
            )
        for condition in conditions or ():
            if isinstance(condition, dict) and condition.get("type") == type:
                return condition
        return None

    def is_true(self, type: str) -> bool:  # noqa: A002 - the API's own word
        """Return whether the status condition of that type exists and is "True"."""
        condition = self.condition(type)
        return condition is not None and condition.get("status") == "True"
