"""The OpenID documents: a program that knows only them can verify the tokens. The same on both servers."""

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fairlead.api.requests import HttpRequest
from fairlead.server.authentication.token_discovery import build_key


async def get(api, path):
    response = await api.transport().request(HttpRequest("GET", path))
    assert response.status == 200
    return json.loads(response.body)


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def test_the_configuration_names_the_issuer_and_the_algorithms(api):
    document = await get(api, "/.well-known/openid-configuration")
    keys = (await get(api, "/openid/v1/jwks"))["keys"]
    assert document["id_token_signing_alg_values_supported"] == [key["alg"] for key in keys]
    assert document["jwks_uri"].endswith("/openid/v1/jwks")
    assert (document["response_types_supported"], document["subject_types_supported"]) == (["id_token"], ["public"])
    assert document["issuer"].startswith("https://")
    assert all(key["use"] == "sig" for key in keys)


@pytest.mark.only("embedded", reason="the real server's key is of another type")
async def test_a_token_can_be_verified_with_the_published_key(api):
    path = f"/api/v1/namespaces/{api.namespace}/serviceaccounts"
    for place, body in ((path, {"metadata": {"name": "bot"}}), (f"{path}/bot/token", {"spec": {}})):
        response = await api.transport().request(HttpRequest("POST", place, body=json.dumps(body).encode()))
    signed, _, signature = json.loads(response.body)["status"]["token"].rpartition(".")
    (key,) = (await get(api, "/openid/v1/jwks"))["keys"]
    Ed25519PublicKey.from_public_bytes(decode(key["x"])).verify(decode(signature), signed.encode())


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        (ec.generate_private_key(ec.SECP256R1()), {"kty": "EC", "crv": "P-256", "alg": "ES256"}),
        (ec.generate_private_key(ec.SECP521R1()), {"kty": "EC", "crv": "P-521", "alg": "ES512"}),
        (rsa.generate_private_key(65537, 2048), {"kty": "RSA", "alg": "RS256", "e": "AQAB"}),
        (Ed25519PrivateKey.generate(), {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA"}),
    ],
    ids=["P-256", "P-521", "RSA", "Ed25519"],
)
def test_each_type_of_key_is_published(key, fields):
    assert fields.items() <= build_key(key.public_key()).items()
