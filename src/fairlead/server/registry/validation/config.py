"""Validation of ConfigMaps and Secrets."""

import base64
import binascii
from typing import Final

from fairlead.server.golang import encoding
from fairlead.server.registry.validation.formats import are_ordinary_config_keys, config_key
from fairlead.server.registry.validation.rules import Errors, Object, Rule, Scope, build_validator, field

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_MAX_SIZE: Final = 1024 * 1024
_REQUIRED_KEYS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_JSON_KEYS: Final = (".dockercfg", ".dockerconfigjson")
_ACCOUNT: Final = "kubernetes.io/service-account.name"


def _check_immutable_if_marked(*keys: str) -> Rule:
    """Return a rule that rejects changes of `keys` in an object with `immutable: true`."""

    def rule(obj: Scope) -> Errors:
        if obj.old is None or not obj.old_value("immutable"):
            return
        if not obj.get("immutable"):
            yield obj.forbidden("immutable", _IMMUTABLE)
        for key in keys:
            if obj.map(key) != (obj.old_value(key) or {}):
                yield obj.forbidden(key, _IMMUTABLE)

    return rule


def _check_keys(field: str) -> Rule:
    def rule(obj: Scope) -> Errors:
        if are_ordinary_config_keys(obj.map(field)):
            return ()
        return [error for key in obj.map(field) for error in obj.check(f"{field}[{key}]", config_key, key)]

    return rule


def _check_keys_in_both(config_map: Scope) -> Errors:
    binary = config_map.get("binaryData")
    for key in config_map.map("data") if binary else ():
        if key in binary:
            yield config_map.invalid(f"data[{key}]", "duplicate of key present in binaryData", key)


def _measure_texts(data: Object) -> int:
    """Return the size of all values in bytes. The result is exact only if it is close to the limit."""
    letters = sum(map(len, data.values()))
    return letters if letters * 4 <= _MAX_SIZE // 2 else sum(len(value.encode()) for value in data.values())


def _measure_encoded(data: Object) -> int:
    return sum(len(value) * 3 // 4 for value in data.values())


def _check_config_map_size(config_map: Scope) -> Errors:
    if _measure_texts(config_map.map("data")) + _measure_encoded(config_map.map("binaryData")) > _MAX_SIZE:
        yield config_map.too_long("", _MAX_SIZE)


config_map: Final = build_validator(
    _check_immutable_if_marked("data", "binaryData"),
    _check_keys("data"),
    _check_keys_in_both,
    _check_keys("binaryData"),
    _check_config_map_size,
)


def _check_secret_size(secret: Scope) -> Errors:
    if _measure_encoded(secret.map("data")) > _MAX_SIZE:
        yield secret.too_long("data", _MAX_SIZE)


def _check_secret_type(secret: Scope) -> Errors:
    """Require the data keys and annotations that the type of a Secret needs."""
    kind, secret_data = secret.text("type"), secret.map("data")
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in secret_data or (key == "ssh-privatekey" and not secret_data[key]):
            yield secret.required(f"data[{key}]")
        elif key in _JSON_KEYS and (problem := _find_json_problem(secret_data[key])):
            yield secret.invalid(f"data[{key}]", problem, "<secret contents redacted>")
    if kind == "kubernetes.io/basic-auth" and not ({"username", "password"} & secret_data.keys()):
        yield secret.required("data[username]")
        yield secret.required("data[password]")
    if kind == "kubernetes.io/service-account-token" and not secret.map("metadata.annotations").get(_ACCOUNT):
        yield secret.required(f"metadata.annotations[{_ACCOUNT}]")


def _find_json_problem(encoded: str) -> str:
    """Return why a base64 value is not JSON, or "" if it is JSON."""
    try:
        encoding.decode(base64.b64decode(encoded))
    except (encoding.BadJSON, binascii.Error) as error:
        return str(error)
    return ""


secret: Final = build_validator(
    field("type").immutable(zero=""),
    _check_immutable_if_marked("data"),
    _check_keys("data"),
    _check_secret_size,
    _check_secret_type,
)
