"""The OpenID documents of ServiceAccount tokens: other programs read there how to verify a token."""

import base64
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from fairlead.server.authentication.token_keys import PublicKey, compute_key_id

Document = dict[str, Any]
_CURVES = {"secp256r1": ("P-256", "ES256"), "secp384r1": ("P-384", "ES384"), "secp521r1": ("P-521", "ES512")}


def build_configuration(issuer: str, keys: list[PublicKey]) -> Document:
    """Return the document at /.well-known/openid-configuration."""
    return {
        "issuer": issuer,
        "jwks_uri": issuer.rstrip("/") + "/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({build_key(key)["alg"] for key in keys}),
    }


def build_key_set(keys: list[PublicKey]) -> Document:
    """Return the document at /openid/v1/jwks."""
    return {"keys": [build_key(key) for key in keys]}


def build_key(key: PublicKey) -> Document:
    """Return a public key as a JSON Web Key."""
    identity = {"use": "sig", "kid": compute_key_id(key)}
    if isinstance(key, Ed25519PublicKey):
        raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {**identity, "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": _encode(raw)}
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        n, e = (_encode(number.to_bytes((number.bit_length() + 7) // 8, "big")) for number in (numbers.n, numbers.e))
        return {**identity, "kty": "RSA", "alg": "RS256", "n": n, "e": e}
    assert isinstance(key, ec.EllipticCurvePublicKey)
    (curve, algorithm), size = _CURVES[key.curve.name], (key.curve.key_size + 7) // 8
    point = key.public_numbers()
    x, y = (_encode(number.to_bytes(size, "big")) for number in (point.x, point.y))
    return {**identity, "kty": "EC", "crv": curve, "alg": algorithm, "x": x, "y": y}


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
