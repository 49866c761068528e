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
    from fairlead.server.authentication.token_keys import PrivateKey, PublicKey, TokenSettings

ISSUER: Final = "https://kubernetes.default.svc"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_BOUND: Final = {"pod": "pods", "secret": "secrets", "node": "nodes"}


class InvalidToken(Exception):
    """Raised for a token that this server issued and that is no longer valid. The message is the reason."""


class ServiceAccountTokens:
    """Issues and verifies the tokens of ServiceAccounts.

    A token is valid until it expires, as long as its ServiceAccount (by uid) and the object it is bound to exist. The
    signing key comes from the settings. Without one, it is created on first use and stored with the server's other
    secrets. `audiences` are the names of this server: it accepts tokens for them.
    """

    def __init__(
        self,
        world: World,
        store: Store,
        secret: Callable[[str, Callable[[], bytes]], bytes],
        settings: "TokenSettings | None" = None,
    ) -> None:
        self._world = world
        self._store = store
        self._secret = secret
        self.issuers = list(settings.issuers) if settings else [ISSUER]
        self.audiences = list(settings.audiences) if settings else [ISSUER]
        self._cached_key = settings.signing_key if settings else None
        self._verification_keys = list(settings.verification_keys) if settings else []

    @property
    def _signing_key(self) -> "PrivateKey":
        if self._cached_key is None:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

            # The random source of the world and deterministic signatures (Ed25519) make simulations repeatable.
            seed = self._secret("service-accounts", lambda: self._world.random.getrandbits(256).to_bytes(32, "big"))
            self._cached_key = Ed25519PrivateKey.from_private_bytes(seed)
        return self._cached_key

    @property
    def public_keys(self) -> "list[PublicKey]":
        """The keys that verify tokens, that of the signing key first."""
        return [self._signing_key.public_key(), *self._verification_keys]

    def issue(
        self, account: dict[str, Any], audiences: list[str], seconds: int, bound: dict[str, dict[str, str]]
    ) -> str:
        """Return a token for a ServiceAccount object, valid for `seconds`.

        `bound` names the objects that must exist as long as the token is used, for example {"pod": {"name": …, "uid":
        …}}.
        """
        from fairlead.server.authentication import token_keys

        metadata, now = account["metadata"], int(self._world.clock.now())
        reference = {"name": metadata["name"], "uid": metadata["uid"]}
        claims = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuers[0],
            "jti": self._world.uid(),
            "kubernetes.io": {"namespace": metadata["namespace"], **bound, "serviceaccount": reference},
            "nbf": now,
            "sub": service_account_name(metadata["namespace"], metadata["name"]),
        }
        key = self._signing_key
        parts = token_keys.build_header(key), claims
        signed = ".".join(_encode_base64(msgspec.json.encode(part)) for part in parts)
        return f"{signed}.{_encode_base64(token_keys.sign(key, signed.encode()))}"

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
            valid, target = _format_audiences(claims["aud"]), _format_audiences(audiences)
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
        """Return the JWT claims of a token, or None if the token has another issuer or no signature of our keys."""
        from fairlead.server.authentication import token_keys

        signed, _, signature = token.rpartition(".")
        _, dot, payload = signed.partition(".")
        if not dot:
            return None
        try:
            keys = self.public_keys
            if not token_keys.verify(keys, _decode_base64(signature), signed.encode()):
                return None
            claims = msgspec.json.decode(_decode_base64(payload), type=dict[str, Any])
        except (binascii.Error, ValueError):
            return None
        # Another program may sign with the same key. Only tokens with these claims are ours.
        is_ours = claims.get("iss") in self.issuers and claims.keys() >= {"aud", "exp", "nbf", "sub", "jti"}
        return claims if is_ours and isinstance(claims.get("kubernetes.io"), dict) else None


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def _format_audiences(audiences: list[str]) -> str:
    return f"[{' '.join(quote_go(audience) for audience in audiences)}]"
