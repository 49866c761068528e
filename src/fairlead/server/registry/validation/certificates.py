"""Validation of CertificateSigningRequests."""

import base64
import re
from collections import Counter
from typing import Any, Final

from fairlead.api.gojson import quote_go
from fairlead.server.registry.certificate_requests import DECISIONS
from fairlead.server.registry.validation.formats import dns_label, dns_subdomain
from fairlead.server.registry.validation.rules import Check, Errors, Scope, build_validator, field, inside, on_update

Object = dict[str, Any]
_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_FINAL: Final = (*DECISIONS, "Failed")  # the conditions that stay, and whose status is always True
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


def _check_conditions(status: Scope) -> Errors:
    seen: set[str] = set()
    for index, condition in enumerate(status.items("conditions")):
        at, kind, value = f"conditions[{index}]", condition.get("type") or "", condition.get("status") or ""
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        if not kind:
            yield status.required(f"{at}.type")
        if not value:
            yield status.required(f"{at}.status")
        elif value not in allowed:
            yield status.not_supported(f"{at}.status", allowed, value)
        if kind in DECISIONS and seen & set(DECISIONS) - {kind}:
            yield status.invalid("conditions", "Approved and Denied conditions are mutually exclusive", kind)
        if kind in seen:
            yield status.duplicate(f"{at}.type", kind)
        seen.add(kind)


def _check_certificate(status: Scope) -> Errors:
    if text := status.text("certificate"):
        try:
            _parse_certificates(base64.b64decode(text))
        except ValueError as error:
            yield status.invalid("certificate", str(error), "<certificate data>")


def _parse_certificates(pem: bytes) -> None:
    """Raise ValueError with the message of a real server unless `pem` has certificates and nothing else."""
    from cryptography import x509

    blocks = re.findall(rb"-----BEGIN ([^-]+)-----\s*(.*?)-----END \1-----", pem, re.DOTALL)
    for label, content in blocks:
        if label != b"CERTIFICATE":
            raise ValueError(f"only CERTIFICATE PEM blocks are allowed, found {quote_go(label.decode())}")
        if b":" in content:
            raise ValueError("no PEM block headers are permitted")
        try:
            x509.load_der_x509_certificate(base64.b64decode(content))
        except ValueError:
            raise ValueError("x509: malformed certificate") from None
    if not blocks:
        raise ValueError("must contain at least one CERTIFICATE PEM block")


def _check_kept_conditions(status: Scope) -> Errors:
    """Reject an update that removes a final condition."""
    before, after = _count_conditions(status.old or {}), _count_conditions(status.value)
    for kind in _FINAL:
        if after[kind] < before[kind]:
            yield status.forbidden("conditions", f"updates may not remove a condition of type {quote_go(kind)}")


def _check_issuing(status: Scope) -> Errors:
    """Reject an update of /status that decides, or that changes an issued certificate."""
    old = status.old or {}
    before, after = _count_conditions(old), _count_conditions(status.value)
    for kind in DECISIONS:
        if after[kind] > before[kind]:
            yield status.forbidden("conditions", f"updates may not add a condition of type {quote_go(kind)}")
    if old.get("certificate") and status.get("certificate") != old["certificate"]:
        yield status.forbidden("certificate", "updates may not modify existing certificate content")


def _count_conditions(status: Object) -> Counter[str]:
    """Return how many conditions of each type a status has."""
    return Counter(condition.get("type") or "" for condition in status.get("conditions") or ())


_SPEC: Final = inside(
    "spec",
    _check_request,
    field("usages").required(),
    field("usages").enum_values(*_USAGES),
    field("usages").unique_values(),
    _check_signer_name,
    field("expirationSeconds").at_least(600, message="may not specify a duration less than 600 seconds (10 minutes)"),
    always=True,
)
_STATUS: Final = (_check_conditions, _check_certificate, on_update(_check_kept_conditions))
request: Final = build_validator(_SPEC, inside("status", *_STATUS, always=True))
request_status: Final = build_validator(_SPEC, inside("status", *_STATUS, on_update(_check_issuing), always=True))
