"""Validation of CertificateSigningRequests."""

import base64
from typing import Final

from fairlead.api.gojson import quote_go
from fairlead.server.registry.validation.formats import dns_label, dns_subdomain
from fairlead.server.registry.validation.rules import Check, Errors, Scope, field, inside, validator

_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_MAX_DOMAIN, _MAX_PATH = 253, 317  # lengths in the name of a signer
_MAX_SIGNER: Final = _MAX_DOMAIN + _MAX_PATH + 1


def _check_request(spec: Scope) -> Errors:
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in base64.b64decode(spec.text("request")):
        yield spec.invalid("request", "PEM block type must be CERTIFICATE REQUEST")


def _check_signer_name(spec: Scope) -> Errors:
    key, name = "signerName", spec.text("signerName")
    domain, _, path = name.partition("/")
    if not name:
        yield spec.required(key)
    elif name == "kubernetes.io/legacy-unknown":
        yield spec.invalid(key, "the legacy signerName is not allowed via this API version")
    elif name.count("/") != 1:
        yield spec.invalid(key, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
    else:
        if len(domain) > _MAX_DOMAIN:
            yield spec.too_long(key, _MAX_DOMAIN)
        yield from _check_first_wrong_label(spec, domain, dns_label)
        if "." not in domain:
            yield spec.invalid(key, "should be a domain with at least two segments separated by dots", domain)
        yield from _check_first_wrong_label(spec, path, dns_subdomain)
        if len(name) > _MAX_SIGNER:
            yield spec.too_long(key, _MAX_SIGNER)


def _check_first_wrong_label(spec: Scope, host: str, check: Check) -> Errors:
    for label in host.split("."):
        if messages := list(check(label)):
            start = f"validating label {quote_go(label)}"
            return [spec.invalid("signerName", f"{start}: {message}", host) for message in messages]
    return []


request: Final = validator(
    inside(
        "spec",
        _check_request,
        field("usages").required(),
        field("usages").enum_values(*_USAGES),
        field("usages").unique_values(),
        _check_signer_name,
        field("expirationSeconds").at_least(
            600, message="may not specify a duration less than 600 seconds (10 minutes)"
        ),
        always=True,
    )
)
