"""The authenticator: it finds the user of a request from the request's credentials."""

from typing import Final

from fairlead.server.authentication.service_account_tokens import InvalidToken, ServiceAccountTokens
from fairlead.server.authentication.static_tokens import StaticTokens
from fairlead.server.authentication.users import ADMIN, ANONYMOUS, User
from fairlead.server.errors.statuses import unauthorized
from fairlead.server.http.messages import Request

PUBLIC_PATHS: Final = frozenset(
    {"/version"} | {f"/{name}{check}" for name in ("healthz", "livez", "readyz") for check in ("", "/ping")}
)  # anyone may read these paths, so that probes need no token

EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"


class Authenticator:
    """Finds the user of a request.

    An invalid bearer token gets 401, even on a server without tokens. Other Authorization schemes are ignored.
    A request without a credential comes from an administrator if the server has no tokens. Otherwise its user is
    system:anonymous if `allow_anonymous` is set or the path is public, and the request gets 401 if not.
    """

    def __init__(
        self, static_tokens: StaticTokens, service_account_tokens: ServiceAccountTokens, *, allow_anonymous: bool
    ) -> None:
        self._static_tokens = static_tokens
        self._service_account_tokens = service_account_tokens
        self._allow_anonymous = allow_anonymous
        self.audiences = service_account_tokens.audiences

    def authenticate(self, request: Request) -> User:
        """Return the user of a request. Raises 401 if the credential is invalid or missing."""
        if request.certificate_user is not None:
            return request.certificate_user
        if token := _parse_bearer_token(request):
            verified = self._verify(token, self.audiences)
            if verified is None:
                raise unauthorized()
            return verified[0]
        if not self._static_tokens:
            return ADMIN
        if self._allow_anonymous or request.path in PUBLIC_PATHS:
            return ANONYMOUS
        raise unauthorized()

    def _verify(self, token: str, audiences: list[str]) -> tuple[User, list[str]] | None:
        """Return the user of a token and the audiences for which the token is valid, or None for an invalid token."""
        try:
            return self.review(token, audiences)
        except InvalidToken:
            return None

    def review(self, token: str, audiences: list[str]) -> tuple[User, list[str]] | None:
        """Return the user of a token and the audiences for which the token is valid, or None for an unknown token.

        Raises InvalidToken with the reason if this server issued the token and the token is no longer valid.
        """
        static_user = self._static_tokens.user(token)
        if static_user is not None:  # static tokens are valid for this server only
            server_audiences = [audience for audience in audiences if audience in self.audiences]
            return (static_user, server_audiences) if server_audiences else None
        return self._service_account_tokens.verify(token, audiences)


def _parse_bearer_token(request: Request) -> str:
    """Return the token in the header `Authorization: Bearer TOKEN`, or "". Text after the token is ignored."""
    scheme, *credentials = request.headers.get("authorization", "").strip().split(" ", 2)
    if not credentials or scheme.lower() != "bearer":
        return ""
    if not credentials[0] and len(credentials) == 2:
        request.warn(EXTRA_SPACE)
    return credentials[0]
