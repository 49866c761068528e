"""Keys for ServiceAccount tokens: every kind of key that kube-apiserver accepts signs and verifies."""

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from fairlead.server.authentication import token_keys

KEYS = {
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ES512": lambda: ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


@pytest.mark.parametrize("algorithm", KEYS)
def test_signature_is_verified_by_the_public_key_of_the_file_only(algorithm: str) -> None:
    key = KEYS[algorithm]()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    signature = token_keys.sign(token_keys.parse_private_key(pem), b"data")
    assert token_keys.build_header(key)["alg"] == algorithm
    assert token_keys.verify(token_keys.parse_public_keys(pem), signature, b"data")
    assert not token_keys.verify(token_keys.parse_public_keys(pem), signature, b"other")
    assert not token_keys.verify(token_keys.parse_public_keys(pem), signature[1:], b"data")
    assert not token_keys.verify([KEYS[algorithm]().public_key()], signature, b"data")


def test_key_file_may_hold_several_keys() -> None:
    keys = [KEYS["RS256"]().public_key(), KEYS["ES256"]().public_key()]
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    pem = b"".join(key.public_bytes(*form) for key in keys)
    ids = [token_keys.compute_key_id(key) for key in token_keys.parse_public_keys(pem)]
    assert ids == [token_keys.compute_key_id(key) for key in keys]


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_file_without_a_key_is_an_error(pem: bytes) -> None:
    with pytest.raises(ValueError, match=r"key"):
        token_keys.parse_public_keys(pem)
    with pytest.raises(ValueError, match=r"no private"):
        token_keys.parse_private_key(pem)


def test_header_names_the_key_as_a_real_server_does() -> None:
    key = KEYS["ES256"]()
    encoded = msgspec.json.encode(token_keys.build_header(key)).decode()
    assert encoded == f'{{"alg":"ES256","kid":"{token_keys.compute_key_id(key.public_key())}"}}'
