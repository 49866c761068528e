"""Tokens of ServiceAccounts: signed, bound to objects that must still exist, valid for a while."""

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fairlead.api.world import World
from fairlead.server.authentication.users import AUTHENTICATED, User, service_account_groups, service_account_name
from fairlead.server.errors.field_errors import quote_go
from fairlead.server.storage.store import Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ISSUER: Final = "https://kubernetes.default.svc"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_BOUND: Final = {"pod": "pods", "secret": "secrets", "node": "nodes"}


class InvalidToken(Exception):
    """A token that does not authenticate, and why."""


class ServiceAccountTokens:
    """Issues tokens and tells whose they are.

    A token is good while its ServiceAccount (by uid), the object it is bound to and its time last. The signing key is
    this server's own and lives as long as its state does.
    """

    def __init__(self, world: World, store: Store, secret: Callable[[str, Callable[[], bytes]], bytes]) -> None:
        self._world = world
        self._store = store
        self._secret = secret
        self._made: Ed25519PrivateKey | None = None

    @property
    def _key(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if self._made is None:
            # From this world's random source; and a signature that follows from its text keeps a simulation repeatable.
            seed = self._secret("service-accounts", lambda: self._world.random.getrandbits(256).to_bytes(32, "big"))
            self._made = Ed25519PrivateKey.from_private_bytes(seed)
        return self._made

    def issue(
        self, account: dict[str, Any], audiences: list[str], seconds: int, bound: dict[str, dict[str, str]]
    ) -> str:
        """A token for a ServiceAccount object. `bound` names further objects: {"pod": {"name": …, "uid": …}}."""
        metadata, now = account["metadata"], int(self._world.clock.now())
        whose = {"name": metadata["name"], "uid": metadata["uid"]}
        claims = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "jti": self._world.uid(),
            "kubernetes.io": {"namespace": metadata["namespace"], **bound, "serviceaccount": whose},
            "nbf": now,
            "sub": service_account_name(metadata["namespace"], metadata["name"]),
        }
        signed = f"{_encoded(msgspec.json.encode({'alg': 'EdDSA'}))}.{_encoded(msgspec.json.encode(claims))}"
        return f"{signed}.{_encoded(self._key.sign(signed.encode()))}"

    def user(self, token: str, audiences: list[str]) -> tuple[User, list[str]] | None:
        """Whose token it is and which of the audiences it is for; None where it is none of ours. Raises Refused."""
        claims = self._claims(token)
        if claims is None:
            return None
        now = self._world.clock.now()
        if not claims["nbf"] <= now < claims["exp"]:
            raise InvalidToken("service account token has expired")
        shared = [audience for audience in audiences if audience in claims["aud"]]
        if not shared:
            raise InvalidToken(
                f"token audiences {_listed(claims['aud'])} is invalid for the target audiences {_listed(audiences)}"
            )
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        self._alive("serviceaccounts", namespace, account)
        extra = {_CREDENTIAL: (f"JTI={claims['jti']}",)}
        for word, plural in _BOUND.items():
            if word in private:
                if word != "node" or "pod" not in private:
                    self._alive(plural, "" if word == "node" else namespace, private[word])
                if word != "secret":
                    extra[f"authentication.kubernetes.io/{word}-name"] = (private[word]["name"],)
                    extra[f"authentication.kubernetes.io/{word}-uid"] = (private[word]["uid"],)
        groups = (*service_account_groups(namespace), AUTHENTICATED)
        return User(claims["sub"], groups, account["uid"], extra), shared

    def _alive(self, plural: str, namespace: str, named: dict[str, str]) -> None:
        stored = self._store.table("", plural).get(namespace, named["name"])
        if stored is None:
            raise InvalidToken(f'{plural} "{named["name"]}" not found')
        if stored.object["metadata"]["uid"] != named["uid"]:
            raise InvalidToken(
                f"the {plural} UID ({stored.object['metadata']['uid']}) does not match claim ({named['uid']})"
            )

    def _claims(self, token: str) -> dict[str, Any] | None:
        """What a token of this server says; None where this server did not sign it."""
        from cryptography.exceptions import InvalidSignature

        signed, _, signature = token.rpartition(".")
        _, dot, payload = signed.partition(".")
        if not dot:
            return None
        try:
            self._key.public_key().verify(_decoded(signature), signed.encode())
        except (InvalidSignature, binascii.Error, ValueError):
            return None
        claims: dict[str, Any] = msgspec.json.decode(_decoded(payload))
        return claims


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def _listed(values: list[str]) -> str:
    return f"[{' '.join(quote_go(value) for value in values)}]"
