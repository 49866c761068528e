"""From a request's credentials to its user: certificate, bearer token, or nobody in particular."""

from typing import Final

from fairlead.server.authentication.service_account_tokens import ISSUER, InvalidToken, ServiceAccountTokens
from fairlead.server.authentication.static_tokens import StaticTokens
from fairlead.server.authentication.users import ADMIN, ANONYMOUS, User
from fairlead.server.errors.statuses import unauthorized
from fairlead.server.http.messages import Request

AUDIENCES: Final = [ISSUER]
PUBLIC_PATHS: Final = frozenset(
    {"/version"} | {f"/{name}{check}" for name in ("healthz", "livez", "readyz") for check in ("", "/ping")}
)  # what anyone may read, so that probes need no token

EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"


class Authenticator:
    """Says who asks.

    A token that is not good is a 401 everywhere, also where none is needed; any other kind of credential is none.
    Without a credential: on a server that
    asks for none, an administrator; with `anonymous`, system:anonymous, and authorization judges it; else a 401 but
    for health and version.
    """

    def __init__(
        self, tokens: StaticTokens, service_account_tokens: ServiceAccountTokens, *, allow_anonymous: bool
    ) -> None:
        self._tokens = tokens
        self._accounts = service_account_tokens
        self._allow_anonymous = allow_anonymous

    def authenticate(self, request: Request) -> User:
        if request.certificate_user is not None:
            return request.certificate_user
        if token := _bearer(request):
            found = self.by_token(token, AUDIENCES)
            if found is None:
                raise unauthorized()
            return found[0]
        if not self._tokens:
            return ADMIN
        if self._allow_anonymous or request.path in PUBLIC_PATHS:
            return ANONYMOUS
        raise unauthorized()

    def by_token(self, token: str, audiences: list[str]) -> tuple[User, list[str]] | None:
        """The user behind a token and the audiences it is good for."""
        try:
            return self.reviewed(token, audiences)
        except InvalidToken:
            return None

    def reviewed(self, token: str, audiences: list[str]) -> tuple[User, list[str]] | None:
        """As `by_token`, but raises Refused with the reason where the token is ours and no longer good."""
        known = self._tokens.user(token)
        if known is not None:  # meant for this server alone
            meant = [audience for audience in audiences if audience in AUDIENCES]
            return (known, meant) if meant else None
        return self._accounts.user(token, audiences)


def _bearer(request: Request) -> str:
    """The bearer token that a request carries; what comes after it does not count."""
    scheme, *rest = request.headers.get("authorization", "").strip().split(" ", 2)
    if not rest or scheme.lower() != "bearer":
        return ""
    if not rest[0] and len(rest) == 2:
        request.warn(EXTRA_SPACE)
    return rest[0]
