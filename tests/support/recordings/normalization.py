"""Replace values that differ between servers by tokens that preserve equality."""

import re
from typing import Any

_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_AGE = re.compile(r"^(\d+[smhdy]){1,2}$")
_JWT = re.compile(r"^eyJ[\w-]+\.[\w-]+\.[\w-]+$")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ENTRY_ORDER = ("manager", "operation", "subresource", "apiVersion")


class Normalizer:
    """Normalizes the responses of one run of a scenario. Equal values get equal tokens."""

    def __init__(self, namespace: str, run_id: str) -> None:
        self.namespace, self.run_id = namespace, run_id
        self.uids: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        self.suffixes: dict[str, str] = {}

    def normalize(self, value: Any, key: str | None = None) -> Any:
        """Return a normalized JSON value. `key` is the name of its field."""
        if isinstance(value, dict):
            return self._normalize_map(value)
        if isinstance(value, list):
            return [self.normalize(item, key) for item in value]
        return self._normalize_string(value, key) if isinstance(value, str) else value

    def normalize_text(self, text: str) -> str:
        """Return a text without the names and uids of this run."""
        text = text.replace(self.namespace, "{ns}").replace(self.run_id, "{id}")
        return _UID.sub(lambda match: _token(self.uids, "uid", match.group()), text)

    def _normalize_map(self, value: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        kind = str(value.get("kind", ""))
        has_store_version = kind.endswith("List") or kind == "Table" or value.get("type") == "BOOKMARK"
        # Tokens are numbered in the order of keys, because servers write fields in different orders.
        for key, item in sorted(value.items(), key=lambda pair: (pair[0] == "managedFields", pair[0])):
            if has_store_version and key in ("metadata", "object") and isinstance(item, dict):
                item = _remove_store_version(item)
            if key == "managedFields" and isinstance(item, list):
                entries = [self.normalize(entry) for entry in item]
                result[key] = sorted(entries, key=lambda entry: tuple(entry.get(part, "") for part in _ENTRY_ORDER))
            else:
                result[self.normalize_text(key)] = self.normalize(item, key)
        prefix = value.get("generateName")
        if prefix and isinstance(value.get("name"), str) and value["name"].startswith(prefix):
            result["name"] = self.normalize_text(prefix) + _token(self.suffixes, "suffix", value["name"])
        return result

    def _normalize_string(self, value: str, key: str | None) -> str:
        if key == "resourceVersion" and value and value != "0":
            return _token(self.versions, "rv", value)
        if _TIME.match(value):
            return "<time>"
        if key == "continue" and value:
            return "<continue>"
        if key == "cells":
            if _AGE.match(value):
                return "<age>"
            for name, token in self.suffixes.items():
                value = value.replace(name, token)
        if _JWT.match(value):
            return "<token>"
        if key == "message":  # Messages are not compared by default, so they must not number the uids.
            value = _UID.sub(lambda match: self.uids.get(match.group(), "<uid?>"), value)
        return self.normalize_text(value)


def _token(tokens: dict[str, str], prefix: str, value: str) -> str:
    return tokens.setdefault(value, f"<{prefix}{len(tokens)}>")


def _remove_store_version(value: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a list or bookmark without the version of the store: any other writer changes it."""
    value = {key: item for key, item in value.items() if key not in ("resourceVersion", "remainingItemCount")}
    if isinstance(value.get("metadata"), dict):
        value["metadata"] = _remove_store_version(value["metadata"])
    return value
