"""ServiceAccount tokens: signed JWTs that expire, and that are bound to objects that must still exist."""

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fairlead.api.gojson import quote_go
from fairlead.api.world import World
from fairlead.server.authentication.users import AUTHENTICATED, User, service_account_groups, service_account_name
from fairlead.server.storage.store import Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ISSUER: Final = "https://kubernetes.default.svc"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_BOUND: Final = {"pod": "pods", "secret": "secrets", "node": "nodes"}


class InvalidToken(Exception):
    """Raised for a token that this server issued and that is no longer valid. The message is the reason."""


class ServiceAccountTokens:
    """Issues and verifies the tokens of ServiceAccounts.

    A token is valid until it expires, as long as its ServiceAccount (by uid) and the object it is bound to exist. The
    signing key is created on first use and stored with the server's other secrets.
    """

    def __init__(self, world: World, store: Store, secret: Callable[[str, Callable[[], bytes]], bytes]) -> None:
        self._world = world
        self._store = store
        self._secret = secret
        self._cached_key: Ed25519PrivateKey | None = None

    @property
    def _signing_key(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if self._cached_key is None:
            # The random source of the world and deterministic signatures (Ed25519) make simulations repeatable.
            seed = self._secret("service-accounts", lambda: self._world.random.getrandbits(256).to_bytes(32, "big"))
            self._cached_key = Ed25519PrivateKey.from_private_bytes(seed)
        return self._cached_key

    def issue(
        self, account: dict[str, Any], audiences: list[str], seconds: int, bound: dict[str, dict[str, str]]
    ) -> str:
        """Return a token for a ServiceAccount object, valid for `seconds`.

        `bound` names the objects that must exist as long as the token is used, for example {"pod": {"name": …, "uid":
        …}}.
        """
        metadata, now = account["metadata"], int(self._world.clock.now())
        reference = {"name": metadata["name"], "uid": metadata["uid"]}
        claims = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "jti": self._world.uid(),
            "kubernetes.io": {"namespace": metadata["namespace"], **bound, "serviceaccount": reference},
            "nbf": now,
            "sub": service_account_name(metadata["namespace"], metadata["name"]),
        }
        signed = ".".join(_encode_base64(msgspec.json.encode(part)) for part in ({"alg": "EdDSA"}, claims))
        return f"{signed}.{_encode_base64(self._signing_key.sign(signed.encode()))}"

    def verify(self, token: str, audiences: list[str]) -> tuple[User, list[str]] | None:
        """Return the user of a token and the audiences for which it is valid, or None for an unknown token.

        Raises InvalidToken if the token expired, or if its ServiceAccount or bound object is gone.
        """
        claims = self._decode_claims(token)
        if claims is None:
            return None
        now = self._world.clock.now()
        if not claims["nbf"] <= now < claims["exp"]:
            raise InvalidToken("service account token has expired")
        shared = [audience for audience in audiences if audience in claims["aud"]]
        if not shared:
            valid, target = _format_go_list(claims["aud"]), _format_go_list(audiences)
            raise InvalidToken(f"token audiences {valid} is invalid for the target audiences {target}")
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        self._require_existing("serviceaccounts", namespace, account)
        extra = {_CREDENTIAL: (f"JTI={claims['jti']}",)}
        for kind, plural in _BOUND.items():
            if kind in private:
                if kind != "node" or "pod" not in private:
                    self._require_existing(plural, "" if kind == "node" else namespace, private[kind])
                if kind != "secret":
                    extra[f"authentication.kubernetes.io/{kind}-name"] = (private[kind]["name"],)
                    extra[f"authentication.kubernetes.io/{kind}-uid"] = (private[kind]["uid"],)
        groups = (*service_account_groups(namespace), AUTHENTICATED)
        return User(claims["sub"], groups, account["uid"], extra), shared

    def _require_existing(self, plural: str, namespace: str, reference: dict[str, str]) -> None:
        stored = self._store.table("", plural).get(namespace, reference["name"])
        if stored is None:
            raise InvalidToken(f'{plural} "{reference["name"]}" not found')
        if stored.object["metadata"]["uid"] != reference["uid"]:
            raise InvalidToken(
                f"the {plural} UID ({stored.object['metadata']['uid']}) does not match claim ({reference['uid']})"
            )

    def _decode_claims(self, token: str) -> dict[str, Any] | None:
        """Return the JWT claims of a token, or None if this server did not sign the token."""
        from cryptography.exceptions import InvalidSignature

        signed, _, signature = token.rpartition(".")
        _, dot, payload = signed.partition(".")
        if not dot:
            return None
        try:
            self._signing_key.public_key().verify(_decode_base64(signature), signed.encode())
        except (InvalidSignature, binascii.Error, ValueError):
            return None
        claims: dict[str, Any] = msgspec.json.decode(_decode_base64(payload))
        return claims


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def _format_go_list(values: list[str]) -> str:
    return f"[{' '.join(quote_go(value) for value in values)}]"
