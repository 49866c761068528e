"""Requests for certificates."""

import base64
from collections.abc import Callable
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import at_least, checks, inside, joined, needed
from fairlead.server.registry.validation.vocabulary import Object
from fairlead.server.write import names

_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_LEGACY: Final = "kubernetes.io/legacy-unknown"
_DOMAIN, _PATH = 253, 317  # the longest of a signer's name
_FORM: Final = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_SOON: Final = "may not specify a duration less than 600 seconds (10 minutes)"


def _request(new: Object, old: Object | None, path: str) -> list[FieldError]:
    given = new.get("request")
    if b"-----BEGIN CERTIFICATE REQUEST-----" in base64.b64decode(given or ""):
        return []
    told = "PEM block type must be CERTIFICATE REQUEST"
    return [field_errors.invalid(joined(path, "request"), given, told)]


def _usages(new: Object, old: Object | None, path: str) -> list[FieldError]:
    field, given = joined(path, "usages"), new.get("usages") or []
    unknown = [
        field_errors.not_supported(f"{field}[{i}]", one, _USAGES) for i, one in enumerate(given) if one not in _USAGES
    ]
    return unknown + [field_errors.duplicate(f"{field}[{i}]", one) for i, one in enumerate(given) if one in given[:i]]


def _signer(new: Object, old: Object | None, path: str) -> list[FieldError]:
    field, name = joined(path, "signerName"), new.get("signerName") or ""
    if not name:
        return [field_errors.required(field)]
    if name == _LEGACY:
        return [field_errors.invalid(field, name, "the legacy signerName is not allowed via this API version")]
    if name.count("/") != 1:
        return [field_errors.invalid(field, name, _FORM)]
    domain, _, rest = name.partition("/")
    found = [field_errors.too_long(field, _DOMAIN)] if len(domain) > _DOMAIN else []
    found += _labels(field, domain, names.label)
    if "." not in domain:
        found.append(
            field_errors.invalid(field, domain, "should be a domain with at least two segments separated by dots")
        )
    found += _labels(field, rest, names.subdomain)
    return found + ([field_errors.too_long(field, _DOMAIN + _PATH + 1)] if len(name) > _DOMAIN + _PATH + 1 else [])


def _labels(field: str, text: str, rule: Callable[[str], list[str]]) -> list[FieldError]:
    """What is wrong with the first part that is wrong."""
    for part in text.split("."):
        if told := rule(part):
            return [
                field_errors.invalid(field, text, f"validating label {field_errors.quote_go(part)}: {one}")
                for one in told
            ]
    return []


_LASTING: Final = at_least(600, "expirationSeconds", told=_SOON)
request = checks(inside("spec", _request, needed("usages"), _usages, _signer, _LASTING, always=True))
