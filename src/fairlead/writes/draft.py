"""The draft that a deciding function is handed: the object, with the properties that an Object has."""

from collections.abc import MutableMapping
from typing import Any

from fairlead.writes.errors import WriteError
from fairlead.writes.view import Ledger, MapView


class Draft(MapView):
    """The whole object.

    A property of a part that is missing is an empty map that can be written to; `draft.get("status")` is None then.
    """

    __slots__ = ()

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, (), ledger.base)
        ledger.root = self

    def _part(self, *keys: str) -> MutableMapping[str, Any]:
        part: Any = self
        for key in keys:
            if isinstance(part, MapView):
                own = part._own.get(key)  # noqa: SLF001 - a map like itself
                part = own if isinstance(own, dict) else part.below(key)
            else:
                part = part.setdefault(key, {})  # in a map of the function's own
            if part is None:
                raise WriteError(f"{self.name}: {'.'.join(keys)} is no map here: read it as an item of the draft")
        result: MutableMapping[str, Any] = part
        return result

    @property
    def metadata(self) -> MutableMapping[str, Any]:
        return self._part("metadata")

    @property
    def labels(self) -> MutableMapping[str, Any]:
        return self._part("metadata", "labels")

    @property
    def annotations(self) -> MutableMapping[str, Any]:
        return self._part("metadata", "annotations")

    @property
    def spec(self) -> MutableMapping[str, Any]:
        return self._part("spec")

    @property
    def status(self) -> MutableMapping[str, Any]:
        return self._part("status")

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
        """The condition of that type, or None. Notes the types up to it; all types and how many when there is none."""
        conditions = self.status.get("conditions")
        if conditions is not None and not isinstance(conditions, list):
            raise WriteError(f"{self.name}: status.conditions is no list, so nothing can be reported in it: remove it")
        for condition in conditions or ():
            if isinstance(condition, dict) and condition.get("type") == type:
                return condition
        return None

    def is_true(self, type: str) -> bool:  # noqa: A002 - the API's own word
        condition = self.condition(type)
        return condition is not None and condition.get("status") == "True"
