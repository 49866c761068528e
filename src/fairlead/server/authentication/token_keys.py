"""The keys and names with which a server signs and verifies the tokens of ServiceAccounts (JWTs)."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PrivateKey = Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey = Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey

_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
_CURVES: Final[dict[str, tuple[str, hashes.HashAlgorithm]]] = {
    "secp256r1": ("ES256", hashes.SHA256()),
    "secp384r1": ("ES384", hashes.SHA384()),
    "secp521r1": ("ES512", hashes.SHA512()),
}


@dataclass(frozen=True)
class TokenSettings:
    """What the flags --service-account-* and --api-audiences of kube-apiserver set.

    Parameters:
        issuers: the first one is written to new tokens; all are accepted.
        audiences: the audiences of this server. A token for another audience is rejected.
        signing_key: signs new tokens. None: the server creates a key.
        verification_keys: further keys whose tokens are accepted.
    """

    issuers: tuple[str, ...]
    audiences: tuple[str, ...]
    signing_key: PrivateKey | None = None
    verification_keys: tuple[PublicKey, ...] = ()


def parse_private_key(pem: bytes) -> PrivateKey:
    """Return the first private key of a PEM file. Raises ValueError if there is none that can sign tokens."""
    for kind, block in _find_blocks(pem):
        if kind.endswith("PRIVATE KEY"):
            key = serialization.load_pem_private_key(block, None)
            if isinstance(key, PrivateKey):
                return key
    raise ValueError("the file has no private RSA, ECDSA or Ed25519 key in PEM format")


def parse_public_keys(pem: bytes) -> tuple[PublicKey, ...]:
    """Return the public keys of a PEM file with keys or certificates. Raises ValueError if there are none."""
    keys: list[PublicKey] = []
    for kind, block in _find_blocks(pem):
        key: object = None
        if kind.endswith("PRIVATE KEY"):
            key = serialization.load_pem_private_key(block, None).public_key()
        elif kind == "CERTIFICATE":
            key = x509.load_pem_x509_certificate(block).public_key()
        elif kind.endswith("PUBLIC KEY"):
            key = serialization.load_pem_public_key(block)
        if isinstance(key, PublicKey):
            keys.append(key)
    if not keys:
        raise ValueError("the file has no RSA, ECDSA or Ed25519 key in PEM format")
    return tuple(keys)


def build_header(key: PrivateKey) -> dict[str, str]:
    """Return the header of the JWTs that a key signs."""
    if isinstance(key, Ed25519PrivateKey):
        return {"alg": "EdDSA"}
    algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else _CURVES[key.curve.name][0]
    return {"alg": algorithm, "kid": compute_key_id(key.public_key())}


def compute_key_id(key: PublicKey) -> str:
    """Return the key ID of a real server: the SHA-256 of the key's DER form, as unpadded URL-safe base64."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()


def sign(key: PrivateKey, data: bytes) -> bytes:
    """Return the signature of a JWT."""
    if isinstance(key, Ed25519PrivateKey):
        return key.sign(data)
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    size = (key.curve.key_size + 7) // 8
    r, s = utils.decode_dss_signature(key.sign(data, ec.ECDSA(_CURVES[key.curve.name][1])))
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def verify(keys: Sequence[PublicKey], signature: bytes, data: bytes) -> bool:
    """Return whether one of the keys made the signature."""
    return any(_verify(key, signature, data) for key in keys)


def _verify(key: PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, data)
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
        else:
            size = (key.curve.key_size + 7) // 8
            if len(signature) != 2 * size:
                return False
            r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            key.verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(_CURVES[key.curve.name][1]))
    except InvalidSignature:
        return False
    return True


def _find_blocks(pem: bytes) -> list[tuple[str, bytes]]:
    return [(match[1].decode(), match[0] + b"\n") for match in _PEM.finditer(pem)]
