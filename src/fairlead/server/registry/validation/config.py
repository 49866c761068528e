"""ConfigMaps and Secrets."""

import base64
import binascii
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.golang import encoding
from fairlead.server.registry.validation.vocabulary import Object, config_key, plain_keys

_FIXED: Final = "field is immutable when `immutable` is set"
_LIMIT: Final = 1024 * 1024
_REQUIRED: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_JSON: Final = (".dockercfg", ".dockerconfigjson")


def config_map(new: Object, old: Object | None) -> list[FieldError]:
    found = _frozen(new, old, ("data", "binaryData")) if old is not None else []
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    found += _keys(data, "data")
    both = [key for key in data if key in binary] if binary else []
    found += [field_errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in both]
    found += _keys(binary, "binaryData")
    if _size(data) + sum(len(text) * 3 // 4 for text in binary.values()) > _LIMIT:
        found.append(field_errors.too_long("", _LIMIT))
    return found


def _keys(data: Object, field: str) -> list[FieldError]:
    if plain_keys(data):
        return []
    return [cause for key in data for cause in config_key(f"{field}[{key}]", key)]


def _size(data: Object) -> int:
    """The bytes of all values; counted exactly only where it could matter."""
    letters = sum(map(len, data.values()))
    return letters if letters * 4 <= _LIMIT // 2 else sum(len(text.encode()) for text in data.values())


def secret(new: Object, old: Object | None) -> list[FieldError]:
    found: list[FieldError] = []
    kind, data = new.get("type") or "", new.get("data") or {}
    if old is not None:
        found += [field_errors.invalid("type", kind, "field is immutable")] if kind != old.get("type") else []
        found += _frozen(new, old, ("data",))
    found += _keys(data, "data")
    if sum(len(text) * 3 // 4 for text in data.values()) > _LIMIT:
        found.append(field_errors.too_long("data", _LIMIT))
    for key in _REQUIRED.get(kind, ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            found.append(field_errors.required(f"data[{key}]"))
        elif key in _JSON and (told := _not_json(data[key])):
            found.append(field_errors.invalid(f"data[{key}]", "<secret contents redacted>", told))
    if kind == "kubernetes.io/basic-auth" and not ({"username", "password"} & data.keys()):
        found += [field_errors.required("data[username]"), field_errors.required("data[password]")]
    account = "kubernetes.io/service-account.name"
    if kind == "kubernetes.io/service-account-token" and not (new["metadata"].get("annotations") or {}).get(account):
        found.append(field_errors.required(f"metadata.annotations[{account}]"))
    return found


def _frozen(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [field_errors.forbidden("immutable", _FIXED)]
    return found + [
        field_errors.forbidden(key, _FIXED) for key in fields if (new.get(key) or {}) != (old.get(key) or {})
    ]


def _not_json(encoded: str) -> str:
    try:
        encoding.decode(base64.b64decode(encoded))
    except (encoding.BadJSON, binascii.Error) as error:
        return str(error)
    return ""
